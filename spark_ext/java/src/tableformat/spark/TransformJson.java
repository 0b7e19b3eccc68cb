package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;

/** Partition transforms in Python's description: {"transform": "bucket", "width": 16, "column": ["a"]}. */
final class TransformJson {
  private TransformJson() {}

  static Transform[] parse(JsonNode transforms) {
    Transform[] result = new Transform[transforms.size()];
    for (int i = 0; i < result.length; i++) {
      result[i] = parseOne(transforms.get(i));
    }
    return result;
  }

  private static Transform parseOne(JsonNode transform) {
    String name = transform.get("transform").asText();
    StringBuilder column = new StringBuilder();
    for (JsonNode part : transform.get("column")) {
      column.append(column.isEmpty() ? "" : ".").append(Names.quoted(part.asText()));
    }
    Expression reference = Expressions.column(column.toString());
    if (name.equals("identity")) {
      return Expressions.identity(column.toString());
    }
    if (name.equals("bucket")) {
      return Expressions.bucket(transform.get("width").asInt(), column.toString());
    }
    if (transform.has("width")) {
      return Expressions.apply(name, Expressions.literal(transform.get("width").asInt()), reference);
    }
    return Expressions.apply(name, reference);
  }
}
