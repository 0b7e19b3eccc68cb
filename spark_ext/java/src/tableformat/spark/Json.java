package tableformat.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** JSON in the form that both processes use. */
final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final Pattern TIME = Pattern.compile("\"(type|elementType|keyType|valueType)\":\"time\\(6\\)\"");

  private Json() {}

  static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  static ArrayNode array() {
    return MAPPER.createArrayNode();
  }

  static ArrayNode array(String... texts) {
    ArrayNode result = array();
    for (String text : texts) {
      result.add(text);
    }
    return result;
  }

  static JsonNode text(String text) {
    return MAPPER.getNodeFactory().textNode(text);
  }

  static ObjectNode object(Map<String, String> entries) {
    ObjectNode result = object();
    entries.forEach(result::put);
    return result;
  }

  static Map<String, String> map(JsonNode object) {
    Map<String, String> result = new HashMap<>();
    object.properties().forEach(entry -> result.put(entry.getKey(), entry.getValue().asText()));
    return result;
  }

  static String[] strings(JsonNode array) {
    String[] result = new String[array.size()];
    for (int i = 0; i < result.length; i++) {
      result[i] = array.get(i).asText();
    }
    return result;
  }

  static int[] ints(JsonNode array) {
    int[] result = new int[array.size()];
    for (int i = 0; i < result.length; i++) {
      result[i] = array.get(i).asInt();
    }
    return result;
  }

  /** The parts of an identifier, namespace first. */
  static ArrayNode identifier(Identifier identifier) {
    return array(identifier.namespace()).add(identifier.name());
  }

  /** Arguments for a call about a table. */
  static ObjectNode table(Identifier identifier) {
    return object().set("table", identifier(identifier));
  }

  static ObjectNode namespace(String[] namespace) {
    return object().set("namespace", array(namespace));
  }

  /** A type in Spark's own JSON form, as a tree. */
  static JsonNode type(DataType type) {
    return parse(type.json());
  }

  static StructType struct(JsonNode json) {
    if (!Capabilities.HAVE_TIMES) {
      refuseTimes(json);
    }
    return (StructType) DataType.fromJson(json.toString());
  }

  /** Raises an error for types of times of day if Spark does not have them (SP-37). */
  private static void refuseTimes(JsonNode struct) {
    for (JsonNode field : struct.get("fields")) {
      if (TIME.matcher(field.toString()).find()) {
        throw Errors.unsupported(
            "Column '" + field.get("name").asText() + "' has the type time, which needs Spark 4.1 or newer, but this is Spark "
                + org.apache.spark.package$.MODULE$.SPARK_VERSION() + ". Read and write the table from Python.");
      }
    }
  }

  static byte[] bytes(JsonNode node) {
    try {
      return MAPPER.writeValueAsBytes(node);
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }

  static JsonNode parse(String text) {
    try {
      return MAPPER.readTree(text);
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }

  static JsonNode parse(byte[] text) {
    try {
      return MAPPER.readTree(text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
