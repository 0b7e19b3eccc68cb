package tableformat.spark;

import org.apache.spark.sql.types.CalendarIntervalType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Some rows of another vector: row i is row selection[i] of it. Nothing is copied. */
final class SelectedVector extends ColumnVector {
  private final ColumnVector vector;
  private final int[] selection;
  private final SelectedVector[] children;

  SelectedVector(ColumnVector vector, int[] selection) {
    super(vector.dataType());
    this.vector = vector;
    this.selection = selection;
    this.children = new SelectedVector[childCount(vector.dataType())];
  }

  private static int childCount(DataType type) {
    if (type instanceof StructType struct) {
      return struct.size();
    }
    if (type.typeName().equals("variant")) {
      return 2;
    }
    return type instanceof CalendarIntervalType ? 3 : 0;
  }

  @Override public void close() {
    vector.close();
  }

  @Override public void closeIfFreeable() {
    vector.closeIfFreeable();
  }

  @Override public boolean hasNull() {
    return vector.hasNull();
  }

  /** An upper bound: nulls of rows that are not selected are also counted. Spark only checks whether it is zero. */
  @Override public int numNulls() {
    return vector.numNulls();
  }

  @Override public boolean isNullAt(int row) {
    return vector.isNullAt(selection[row]);
  }

  @Override public boolean getBoolean(int row) {
    return vector.getBoolean(selection[row]);
  }

  @Override public byte getByte(int row) {
    return vector.getByte(selection[row]);
  }

  @Override public short getShort(int row) {
    return vector.getShort(selection[row]);
  }

  @Override public int getInt(int row) {
    return vector.getInt(selection[row]);
  }

  @Override public long getLong(int row) {
    return vector.getLong(selection[row]);
  }

  @Override public float getFloat(int row) {
    return vector.getFloat(selection[row]);
  }

  @Override public double getDouble(int row) {
    return vector.getDouble(selection[row]);
  }

  @Override public ColumnarArray getArray(int row) {
    return vector.getArray(selection[row]);
  }

  @Override public ColumnarMap getMap(int row) {
    return vector.getMap(selection[row]);
  }

  @Override public Decimal getDecimal(int row, int precision, int scale) {
    return vector.getDecimal(selection[row], precision, scale);
  }

  @Override public UTF8String getUTF8String(int row) {
    return vector.getUTF8String(selection[row]);
  }

  @Override public byte[] getBinary(int row) {
    return vector.getBinary(selection[row]);
  }

  @Override public ColumnVector getChild(int ordinal) {
    if (children[ordinal] == null) {
      children[ordinal] = new SelectedVector(vector.getChild(ordinal), selection);
    }
    return children[ordinal];
  }
}
