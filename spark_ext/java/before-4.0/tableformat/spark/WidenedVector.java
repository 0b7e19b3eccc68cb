package tableformat.spark;

import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Values of a file, converted to a wider type than the one in the file (SP-61), at any depth. Nothing is copied. */
final class WidenedVector extends ColumnVector {
  private static final long MICROSECONDS_PER_DAY = 86_400_000_000L;

  private final WritableColumnVector stored;
  private final DataType storedType;
  private final ColumnVector[] children;

  private WidenedVector(WritableColumnVector stored, DataType type) {
    super(type);
    this.stored = stored;
    storedType = stored.dataType();
    if (type instanceof StructType struct) {
      children = new ColumnVector[struct.size()];
      for (int i = 0; i < children.length; i++) {
        children[i] = of(stored.getChild(i), struct.apply(i).dataType());
      }
    } else if (type instanceof ArrayType array) {
      children = new ColumnVector[] {of(stored.arrayData(), array.elementType())};
    } else if (type instanceof MapType map) {
      children = new ColumnVector[] {of(stored.getChild(0), map.keyType()), of(stored.getChild(1), map.valueType())};
    } else {
      children = new ColumnVector[0];
    }
  }

  /** The vector itself if it already has the type. */
  static ColumnVector of(ColumnVector stored, DataType type) {
    return stored.dataType().sameType(type) ? stored : new WidenedVector((WritableColumnVector) stored, type);
  }

  @Override public void close() {
    stored.close();
  }

  @Override public void closeIfFreeable() {
    stored.closeIfFreeable();
  }

  @Override public boolean hasNull() {
    return stored.hasNull();
  }

  @Override public int numNulls() {
    return stored.numNulls();
  }

  @Override public boolean isNullAt(int row) {
    return stored.isNullAt(row);
  }

  /** Widens an int to a long, or a date to microseconds. */
  @Override public long getLong(int row) {
    if (storedType instanceof IntegerType) {
      return stored.getInt(row);
    }
    if (storedType instanceof DateType) {
      return stored.getInt(row) * MICROSECONDS_PER_DAY;
    }
    throw unsupported();
  }

  @Override public double getDouble(int row) {
    if (storedType instanceof FloatType) {
      return stored.getFloat(row);
    }
    throw unsupported();
  }

  @Override public Decimal getDecimal(int row, int precision, int scale) {
    if (stored.isNullAt(row)) {
      return null;
    }
    DecimalType narrow = (DecimalType) storedType;
    Decimal value = stored.getDecimal(row, narrow.precision(), narrow.scale()).clone();
    if (!value.changePrecision(precision, scale)) {
      throw new ArithmeticException(value + " does not fit into " + dataType().sql());
    }
    return value;
  }

  @Override public ColumnarArray getArray(int row) {
    return new ColumnarArray(children[0], stored.getArrayOffset(row), stored.getArrayLength(row));
  }

  @Override public ColumnarMap getMap(int row) {
    return new ColumnarMap(children[0], children[1], stored.getArrayOffset(row), stored.getArrayLength(row));
  }

  @Override public ColumnVector getChild(int ordinal) {
    return children[ordinal];
  }

  @Override public boolean getBoolean(int row) {
    throw unsupported();
  }

  @Override public byte getByte(int row) {
    throw unsupported();
  }

  @Override public short getShort(int row) {
    throw unsupported();
  }

  @Override public int getInt(int row) {
    throw unsupported();
  }

  @Override public float getFloat(int row) {
    throw unsupported();
  }

  @Override public UTF8String getUTF8String(int row) {
    throw unsupported();
  }

  @Override public byte[] getBinary(int row) {
    throw unsupported();
  }

  private UnsupportedOperationException unsupported() {
    return new UnsupportedOperationException(storedType.sql() + " as " + dataType().sql());
  }
}
