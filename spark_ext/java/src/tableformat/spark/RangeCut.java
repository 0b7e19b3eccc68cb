package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.UUID;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** RD-1: a cut before or after every row that begins with the values. Without values it is before or after all rows. */
record RangeCut(Object[] values, boolean after) implements Serializable {
  private static final long NANOS_OF_MICRO = 1000;

  /** {"values": [...], "after": false}. The values are in Python's internal form: numbers, strings, or base64 of bytes. */
  static RangeCut of(JsonNode cut, RangeColumn[] columns) {
    JsonNode given = cut.get("values");
    Object[] values = new Object[given.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = columns[i].parsed(given.get(i));
    }
    return new RangeCut(values, cut.get("after").asBoolean());
  }

  /** Whether the cut lies below a row with these values. */
  boolean isBelow(Object[] row) {
    for (int i = 0; i < values.length; i++) {
      int order = compare(row[i], values[i]);
      if (order != 0) {
        return order > 0;
      }
    }
    return !after;
  }

  /** The number of sorted cuts that lie below the row. */
  static int below(RangeCut[] cuts, Object[] row) {
    int from = 0;
    int to = cuts.length;
    while (from < to) {
      int middle = (from + to) >>> 1;
      if (cuts[middle].isBelow(row)) {
        from = middle + 1;
      } else {
        to = middle;
      }
    }
    return from;
  }

  /** Whether exactly `below` of the sorted cuts lie below the row. */
  static boolean isAt(int below, RangeCut[] cuts, Object[] row) {
    return (below == 0 || cuts[below - 1].isBelow(row)) && (below == cuts.length || !cuts[below].isBelow(row));
  }

  private static int compare(Object one, Object other) {
    if (one instanceof Long number) {
      return Long.compare(number, (Long) other);
    }
    if (one instanceof UTF8String text) {
      return text.compareTo((UTF8String) other);
    }
    if (one instanceof byte[] bytes) {
      return Arrays.compareUnsigned(bytes, (byte[]) other);
    }
    return one instanceof BigDecimal decimal
        ? decimal.compareTo((BigDecimal) other) : Boolean.compare((Boolean) one, (Boolean) other);
  }

  /** A range column: its position in a row, and its values in a form that is comparable in the order of keys. */
  record RangeColumn(int ordinal, DataType type, boolean isUuid) implements Serializable {
    /** The value as Long, UTF8String, byte[], BigDecimal or Boolean. It may refer to the memory of the row. */
    Object comparable(Object value) {
      if (value instanceof Number number) {
        return Schemas.isTime(type) ? (Object) (number.longValue() / NANOS_OF_MICRO) : (Object) number.longValue();
      }
      if (value instanceof Decimal decimal) {
        return decimal.toJavaBigDecimal();
      }
      return isUuid ? PartitionTransform.bytes(UUID.fromString(value.toString())) : value;
    }

    /** Whether its comparable values are UTF8String. */
    boolean isText() {
      return type instanceof StringType && !isUuid;
    }

    boolean isNumber() {
      return isInt() || type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType;
    }

    private boolean isInt() {
      return type instanceof IntegerType || type instanceof DateType;
    }

    /** The value of a numeric column, as returned by `comparable`. */
    long number(InternalRow row) {
      return isInt() ? row.getInt(ordinal) : row.getLong(ordinal);
    }

    private Object parsed(JsonNode value) {
      if (isUuid || type instanceof BinaryType) {
        return bytes(value);
      }
      if (type instanceof StringType) {
        return UTF8String.fromString(value.asText());
      }
      if (type instanceof DecimalType) {
        return new BigDecimal(value.asText());
      }
      return type instanceof BooleanType ? (Object) value.asBoolean() : (Object) value.asLong();
    }

    private static byte[] bytes(JsonNode value) {
      try {
        return value.binaryValue();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
