package tableformat.spark;

import java.nio.ByteBuffer;
import java.util.UUID;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Presents a column of UUIDs, 16 bytes each, as strings, which is Spark's type for them. */
final class UuidVector extends ColumnVector {
  private final ColumnVector bytes;

  UuidVector(ColumnVector bytes) {
    super(DataTypes.StringType);
    this.bytes = bytes;
  }

  @Override public UTF8String getUTF8String(int row) {
    byte[] value = bytes.getBinary(row);
    if (value == null) {
      return null;
    }
    ByteBuffer buffer = ByteBuffer.wrap(value);
    return UTF8String.fromString(new UUID(buffer.getLong(), buffer.getLong()).toString());
  }

  @Override public void close() {
    bytes.close();
  }

  @Override public void closeIfFreeable() {
    bytes.closeIfFreeable();
  }

  @Override public boolean hasNull() {
    return bytes.hasNull();
  }

  @Override public int numNulls() {
    return bytes.numNulls();
  }

  @Override public boolean isNullAt(int row) {
    return bytes.isNullAt(row);
  }

  @Override public boolean getBoolean(int row) {
    throw new UnsupportedOperationException();
  }

  @Override public byte getByte(int row) {
    throw new UnsupportedOperationException();
  }

  @Override public short getShort(int row) {
    throw new UnsupportedOperationException();
  }

  @Override public int getInt(int row) {
    throw new UnsupportedOperationException();
  }

  @Override public long getLong(int row) {
    throw new UnsupportedOperationException();
  }

  @Override public float getFloat(int row) {
    throw new UnsupportedOperationException();
  }

  @Override public double getDouble(int row) {
    throw new UnsupportedOperationException();
  }

  @Override public ColumnarArray getArray(int row) {
    throw new UnsupportedOperationException();
  }

  @Override public ColumnarMap getMap(int row) {
    throw new UnsupportedOperationException();
  }

  @Override public Decimal getDecimal(int row, int precision, int scale) {
    throw new UnsupportedOperationException();
  }

  @Override public byte[] getBinary(int row) {
    throw new UnsupportedOperationException();
  }

  @Override public ColumnVector getChild(int ordinal) {
    throw new UnsupportedOperationException();
  }
}
