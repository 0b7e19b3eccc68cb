package tableformat.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns with the same value in every row. */
final class Constants {
  private Constants() {}

  /** The value of one column of a row, or null. */
  static Object value(InternalRow row, int place, DataType type) {
    return row.isNullAt(place) ? null : row.get(place, type);
  }

  /** `value` is in Spark's internal form. If it is null, every row is null. */
  static ConstantColumnVector vector(DataType type, Object value, int rowCount) {
    ConstantColumnVector vector = new ConstantColumnVector(rowCount, type);
    if (type instanceof StructType struct) {
      InternalRow row = (InternalRow) value;
      for (int i = 0; i < struct.size(); i++) {
        DataType field = struct.apply(i).dataType();
        vector.setChild(i, vector(field, row == null ? null : value(row, i, field), rowCount));
      }
    }
    if (value == null) {
      vector.setNull();
      return vector;
    }
    vector.setNotNull();
    set(vector, type, value);
    return vector;
  }

  private static void set(ConstantColumnVector vector, DataType type, Object value) {
    if (type instanceof StructType) {
      return;
    }
    if (type instanceof StringType) {
      vector.setUtf8String((UTF8String) value);
    } else if (type instanceof BinaryType) {
      vector.setBinary((byte[]) value);
    } else if (type instanceof BooleanType) {
      vector.setBoolean((Boolean) value);
    } else if (type instanceof DecimalType decimal) {
      vector.setDecimal((Decimal) value, decimal.precision());
    } else if (type instanceof IntegerType || type instanceof DateType) {
      vector.setInt((Integer) value);
    } else if (type instanceof FloatType) {
      vector.setFloat((Float) value);
    } else if (type instanceof DoubleType) {
      vector.setDouble((Double) value);
    } else if (type instanceof ShortType) {
      vector.setShort((Short) value);
    } else if (type instanceof ByteType) {
      vector.setByte((Byte) value);
    } else {
      vector.setLong((Long) value); // Longs, timestamps and times.
    }
  }
}
