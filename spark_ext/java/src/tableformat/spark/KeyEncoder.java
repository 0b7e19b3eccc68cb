package tableformat.spark;

import java.io.Serializable;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.math.BigInteger;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * RD-4: encodes the key of a row as bytes. Keys are ordered, and equal, as their bytes are. `tableformat/keys/encoding.py` is the same in
 * Python.
 */
final class KeyEncoder {
  private static final byte NULL = 1;
  private static final byte VALUE = 2;
  private static final byte AFTER = (byte) 0xFF;
  private static final int DECIMAL_BYTES = 16;
  private static final long LOWEST_BITS = 0x0101010101010101L;
  private static final long HIGHEST_BITS = 0x8080808080808080L;
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

  /** A delete column: its field id, its type as it is read, and the family of its encoding. */
  record Key(long fieldId, DataType type, String family) implements Serializable {}

  private enum Form { BOOLEAN, INT, LONG, TIME, FLOAT, DOUBLE, DECIMAL, TEXT, BINARY, FIXED }

  private final Key[] keys;
  private final Form[] forms;

  /** The end of each column in the encoding. */
  private final int[] ends;

  private byte[] bytes = new byte[64];
  private int length;

  KeyEncoder(Key[] keys) {
    this.keys = keys;
    forms = Arrays.stream(keys).map(KeyEncoder::form).toArray(Form[]::new);
    ends = new int[keys.length];
  }

  private static Form form(Key key) {
    return switch (key.family()) {
      case "boolean" -> Form.BOOLEAN;
      case "integer" -> key.type() instanceof IntegerType || key.type() instanceof DateType ? Form.INT
          : Schemas.isTime(key.type()) ? Form.TIME : Form.LONG;
      case "float" -> key.type() instanceof FloatType ? Form.FLOAT : Form.DOUBLE;
      case "decimal" -> Form.DECIMAL;
      case "variable-bytes" -> key.type() instanceof org.apache.spark.sql.types.StringType ? Form.TEXT : Form.BINARY;
      case "fixed-bytes" -> Form.FIXED;
      default -> throw new IllegalStateException("unknown family of key columns: " + key.family());
    };
  }

  Key[] keys() {
    return keys;
  }

  /** The encoding is the first `length()` bytes, until the next one. */
  byte[] bytes() {
    return bytes;
  }

  int length() {
    return length;
  }

  /** Where the encoding of a column begins. */
  int begin(int column) {
    return column == 0 ? 0 : ends[column - 1];
  }

  /** Where the encoding of a column ends. */
  int end(int column) {
    return ends[column];
  }

  /** Encodes a row of a batch. `columns` has the key columns. */
  void encode(ColumnVector[] columns, int row) {
    length = 0;
    for (int i = 0; i < forms.length; i++) {
      add(i, columns[i], row);
      ends[i] = length;
    }
  }

  private void add(int key, ColumnVector column, int row) {
    reserve(DECIMAL_BYTES + 1);
    if (column.isNullAt(row)) {
      bytes[length++] = NULL;
      return;
    }
    bytes[length++] = VALUE;
    switch (forms[key]) {
      case BOOLEAN -> bytes[length++] = (byte) (column.getBoolean(row) ? 1 : 0);
      case INT -> addLong(column.getInt(row));
      case LONG -> addLong(column.getLong(row));
      case TIME -> addLong(Math.floorDiv(column.getLong(row), 1000L));
      case FLOAT -> addDouble(column.getFloat(row));
      case DOUBLE -> addDouble(column.getDouble(row));
      case DECIMAL -> {
        DecimalType type = (DecimalType) keys[key].type();
        addDecimal(column.getDecimal(row, type.precision(), type.scale()));
      }
      case TEXT -> {
        UTF8String text = column.getUTF8String(row);
        addVariable(text.getBaseObject(), text.getBaseOffset(), text.numBytes());
      }
      case BINARY -> {
        byte[] value = column.getBinary(row);
        addVariable(value, Platform.BYTE_ARRAY_OFFSET, value.length);
      }
      case FIXED -> {
        byte[] value = column.getBinary(row);
        reserve(value.length);
        System.arraycopy(value, 0, bytes, length, value.length);
        length += value.length;
      }
    }
  }

  /** The encoding of a whole number. */
  static byte[] ofLong(long value) {
    byte[] encoded = new byte[Long.BYTES + 1];
    encoded[0] = VALUE;
    LONGS.set(encoded, 1, value ^ Long.MIN_VALUE);
    return encoded;
  }

  /** The encoding of a string or of bytes of any length. */
  static byte[] ofBytes(byte[] value) {
    KeyEncoder encoder = new KeyEncoder(new Key[0]);
    encoder.bytes[encoder.length++] = VALUE;
    encoder.addVariable(value, Platform.BYTE_ARRAY_OFFSET, value.length);
    return Arrays.copyOf(encoder.bytes, encoder.length);
  }

  static byte[] ofNull() {
    return new byte[] {NULL};
  }

  /** RD-1: the cut above all keys that begin with the encoded values. */
  static byte[] after(byte[] encoded) {
    byte[] cut = Arrays.copyOf(encoded, encoded.length + 1);
    cut[encoded.length] = AFTER;
    return cut;
  }

  private void addLong(long value) {
    LONGS.set(bytes, length, value ^ Long.MIN_VALUE);
    length += Long.BYTES;
  }

  /** -0.0 is 0.0. All NaNs are one value, above infinity. */
  private void addDouble(double value) {
    long bits = Double.doubleToRawLongBits(value + 0.0);
    long code = Double.isNaN(value) ? -1L : bits < 0 ? ~bits : bits ^ Long.MIN_VALUE;
    LONGS.set(bytes, length, code);
    length += Long.BYTES;
  }

  private void addDecimal(Decimal value) {
    if (value.precision() <= Decimal.MAX_LONG_DIGITS()) {
      long unscaled = value.toUnscaledLong();
      LONGS.set(bytes, length, (unscaled >> 63) ^ Long.MIN_VALUE);
      LONGS.set(bytes, length + Long.BYTES, unscaled);
    } else {
      BigInteger unscaled = value.toJavaBigDecimal().unscaledValue();
      LONGS.set(bytes, length, unscaled.shiftRight(Long.SIZE).longValue() ^ Long.MIN_VALUE);
      LONGS.set(bytes, length + Long.BYTES, unscaled.longValue());
    }
    length += DECIMAL_BYTES;
  }

  /** A zero byte becomes 00 FF; the end is 00 01. */
  private void addVariable(Object base, long offset, int size) {
    reserve(2 * size + 2);
    int begin = length;
    if (base instanceof byte[] array) {
      System.arraycopy(array, (int) (offset - Platform.BYTE_ARRAY_OFFSET), bytes, begin, size);
    } else {
      Platform.copyMemory(base, offset, bytes, Platform.BYTE_ARRAY_OFFSET + begin, size);
    }
    length += size;
    if (hasZero(begin)) {
      escapeZeros(begin);
    }
    bytes[length++] = 0;
    bytes[length++] = 1;
  }

  /** Whether there is a zero byte behind `begin`. Eight bytes are examined at once. */
  private boolean hasZero(int begin) {
    int at = begin;
    for (; at + Long.BYTES <= length; at += Long.BYTES) {
      long eight = (long) LONGS.get(bytes, at);
      if ((eight - LOWEST_BITS & ~eight & HIGHEST_BITS) != 0) {
        return true;
      }
    }
    for (; at < length; at++) {
      if (bytes[at] == 0) {
        return true;
      }
    }
    return false;
  }

  private void escapeZeros(int begin) {
    int zeros = 0;
    for (int i = begin; i < length; i++) {
      zeros += bytes[i] == 0 ? 1 : 0;
    }
    int to = length + zeros;
    for (int from = length; from > begin;) {
      byte each = bytes[--from];
      if (each == 0) {
        bytes[--to] = AFTER;
      }
      bytes[--to] = each;
    }
    length += zeros;
  }

  private void reserve(int size) {
    if (bytes.length - length < size) {
      bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, length + size));
    }
  }
}
