package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.Serializable;
import java.util.Locale;
import java.util.UUID;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** One field of the partition spec: the position of its source column in a row, and its transform. */
final class PartitionField implements Serializable {
  private static final long NANOS_OF_MICRO = 1000;

  private final PartitionTransform transform;
  private final int width;
  /** Ordinals from the top of the row to the source field. */
  private final int[] ordinals;
  /** For each ordinal but the last, the number of fields of the struct at that position. */
  private final int[] structSizes;
  private final DataType source;
  private final boolean isUuid;

  private PartitionField(
      PartitionTransform transform, int width, int[] ordinals, int[] structSizes, DataType source, boolean isUuid) {
    this.transform = transform;
    this.width = width;
    this.ordinals = ordinals;
    this.structSizes = structSizes;
    this.source = source;
    this.isUuid = isUuid;
  }

  /** {"transform": "bucket", "width": 16, "column": ["a", "b"]}; "uuid" marks strings that represent a UUID. */
  static PartitionField of(JsonNode field, StructType schema) {
    PartitionTransform transform =
        PartitionTransform.valueOf(field.get("transform").asText().toUpperCase(Locale.ROOT));
    String[] path = transform == PartitionTransform.VOID ? new String[0] : Json.strings(field.get("column"));
    int[] ordinals = new int[path.length];
    int[] structSizes = new int[path.length];
    DataType type = schema;
    for (int i = 0; i < path.length; i++) {
      StructType struct = (StructType) type;
      ordinals[i] = struct.fieldIndex(path[i]);
      type = struct.apply(ordinals[i]).dataType();
      structSizes[i] = type instanceof StructType inner ? inner.size() : 0;
    }
    return new PartitionField(
        transform, field.path("width").asInt(), ordinals, structSizes, type, field.path("uuid").asBoolean());
  }

  /** The value of the field for the row, as `Integer`, `Long`, `UTF8String` etc. It may refer to the memory of the row. */
  Object value(InternalRow row) {
    if (transform == PartitionTransform.VOID) {
      return null;
    }
    InternalRow struct = row;
    int last = ordinals.length - 1;
    for (int i = 0; i < last; i++) {
      if (struct.isNullAt(ordinals[i])) {
        return null;
      }
      struct = struct.getStruct(ordinals[i], structSizes[i]);
    }
    return struct.isNullAt(ordinals[last]) ? null : transformed(struct.get(ordinals[last], source));
  }

  private Object transformed(Object value) {
    return switch (transform) {
      case IDENTITY -> Schemas.isTime(source) ? (Object) micros(value) : value;
      case BUCKET -> bucket(value);
      case TRUNCATE -> truncated(value);
      case YEARS -> PartitionTransform.years(unit(), ((Number) value).longValue());
      case MONTHS -> PartitionTransform.months(unit(), ((Number) value).longValue());
      case DAYS -> PartitionTransform.days(unit(), ((Number) value).longValue());
      case HOURS -> PartitionTransform.hours(((Number) value).longValue());
      case VOID -> null;
    };
  }

  private Object bucket(Object value) {
    if (isUuid) {
      return PartitionTransform.bucket(width, UUID.fromString(value.toString()));
    }
    if (value instanceof UTF8String text) {
      return PartitionTransform.bucket(width, text);
    }
    if (value instanceof byte[] bytes) {
      return PartitionTransform.bucket(width, bytes);
    }
    if (value instanceof Decimal decimal) {
      return PartitionTransform.bucket(width, decimal);
    }
    return PartitionTransform.bucket(
        width, Schemas.isTime(source) ? micros(value) : ((Number) value).longValue());
  }

  private Object truncated(Object value) {
    if (value instanceof UTF8String text) {
      return PartitionTransform.truncate(width, text);
    }
    if (value instanceof byte[] bytes) {
      return PartitionTransform.truncate(width, bytes);
    }
    if (value instanceof Decimal decimal) {
      return PartitionTransform.truncate(width, decimal);
    }
    long truncated = PartitionTransform.truncate(width, ((Number) value).longValue());
    return source instanceof IntegerType ? (Object) (int) truncated : (Object) truncated;
  }

  private PartitionTransform.Unit unit() {
    return source instanceof DateType ? PartitionTransform.Unit.DAY : PartitionTransform.Unit.MICROSECOND;
  }

  private static long micros(Object nanos) {
    return ((Long) nanos) / NANOS_OF_MICRO;
  }

  /** A copy that does not depend on the row that the value came from. */
  static Object owned(Object value) {
    return value instanceof UTF8String text ? text.clone() : value;
  }

  /**
   * Writes the value as JSON. Decimals and numbers that JSON lacks are strings, bytes are base64. A string that is not valid UTF-8 is an
   * array with its base64 form.
   */
  static void write(ArrayNode array, Object value) {
    if (value == null) {
      array.addNull();
    } else if (value instanceof Boolean bool) {
      array.add(bool);
    } else if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
      array.add(((Number) value).intValue());
    } else if (value instanceof Long number) {
      array.add(number);
    } else if (value instanceof Float || value instanceof Double) {
      double number = ((Number) value).doubleValue();
      if (Double.isFinite(number)) {
        array.add(number);
      } else {
        array.add(Double.isNaN(number) ? "nan" : number > 0 ? "inf" : "-inf");
      }
    } else if (value instanceof byte[] bytes) {
      array.add(bytes);
    } else if (value instanceof Decimal decimal) {
      array.add(decimal.toJavaBigDecimal().toPlainString());
    } else if (value instanceof UTF8String text && !ValueJson.isText(text)) {
      array.addArray().add(text.getBytes());
    } else {
      array.add(value.toString());
    }
  }
}
