package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Base64;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Converts Spark's internal values to JSON.
 *
 * <pre>
 * {"literal": "12", "type": "long"}   {"array": [...]}   {"map": [[key, value], ...]}   {"struct": [[name, value], ...]}
 * </pre>
 *
 * A literal is the internal value as a string (days, microseconds, base64 of bytes), or null. The literal of a string that is not valid
 * UTF-8 has the type "text that is no UTF-8", which no column has (SP-96).
 */
final class ValueJson {
  private static final String NO_TEXT = "text that is no UTF-8";

  private ValueJson() {}

  static ObjectNode of(Object value, DataType type) {
    if (value instanceof ArrayData array) {
      return Json.object().set("array", elements(array, ((ArrayType) type).elementType()));
    }
    if (value instanceof MapData map) {
      MapType mapType = (MapType) type;
      return Json.object().set(
          "map", pairs(elements(map.keyArray(), mapType.keyType()), elements(map.valueArray(), mapType.valueType())));
    }
    if (value instanceof InternalRow row) {
      return Json.object().set("struct", fields(row, (StructType) type));
    }
    return literal(value, type);
  }

  /** A literal of a value that is not nested, or of null. */
  static ObjectNode literal(Object value, DataType type) {
    ObjectNode result = Json.object().set("type", Json.type(type));
    if (value == null) {
      return result.putNull("literal");
    }
    if (value instanceof UTF8String text && !isText(text)) {
      result.put("type", NO_TEXT);
    }
    return result.put("literal", value instanceof byte[] bytes ? Base64.getEncoder().encodeToString(bytes) : value.toString());
  }

  /** Whether the string is valid UTF-8. Spark's strings can contain any bytes, and all invalid ones would become the same character. */
  static boolean isText(UTF8String value) {
    return UTF8String.fromString(value.toString()).equals(value);
  }

  private static ArrayNode elements(ArrayData array, DataType type) {
    ArrayNode result = Json.array();
    for (int i = 0; i < array.numElements(); i++) {
      result.add(of(array.isNullAt(i) ? null : array.get(i, type), type));
    }
    return result;
  }

  private static ArrayNode pairs(ArrayNode keys, ArrayNode values) {
    ArrayNode result = Json.array();
    for (int i = 0; i < keys.size(); i++) {
      result.add(pair(keys.get(i), values.get(i)));
    }
    return result;
  }

  private static ArrayNode fields(InternalRow row, StructType type) {
    ArrayNode result = Json.array();
    for (int i = 0; i < type.size(); i++) {
      DataType field = type.apply(i).dataType();
      result.add(pair(Json.text(type.apply(i).name()), of(Constants.value(row, i, field), field)));
    }
    return result;
  }

  private static ArrayNode pair(JsonNode first, JsonNode second) {
    return Json.array().add(first).add(second);
  }
}
