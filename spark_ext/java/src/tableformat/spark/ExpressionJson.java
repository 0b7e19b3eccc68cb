package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Base64;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;

/**
 * Spark's expressions as JSON.
 *
 * <pre>
 * {"column": ["a", "b"]}   {"literal": "12", "type": "long"}   {"operator": "AND", "arguments": [...]}
 * {"transform": "bucket", "arguments": [...]}   {"unknown": "what Spark calls it"}
 * </pre>
 *
 * A literal is text of Spark's internal value (days, micros, base64 of bytes), or null.
 */
final class ExpressionJson {
  private ExpressionJson() {}

  static ArrayNode of(Expression[] expressions) {
    ArrayNode result = Json.array();
    for (Expression expression : expressions) {
      result.add(of(expression));
    }
    return result;
  }

  static ObjectNode of(Expression expression) {
    if (expression instanceof NamedReference reference) {
      return Json.object().set("column", Json.array(reference.fieldNames()));
    }
    if (expression instanceof Literal<?> literal) {
      return literal(literal);
    }
    if (expression instanceof Transform transform) {
      return Json.object().put("transform", transform.name()).set("arguments", of(transform.arguments()));
    }
    if (expression instanceof Cast cast) {
      ObjectNode result = Json.object().put("operator", "CAST").set("arguments", of(cast.children()));
      return result.set("to", Json.type(cast.dataType()));
    }
    if (expression instanceof GeneralScalarExpression scalar) {
      return Json.object().put("operator", scalar.name()).set("arguments", of(scalar.children()));
    }
    return Json.object().put("unknown", expression.toString());
  }

  private static ObjectNode literal(Literal<?> literal) {
    JsonNode type = Json.type(literal.dataType());
    ObjectNode result = Json.object().set("type", type);
    Object value = literal.value();
    if (value == null) {
      return result.putNull("literal");
    }
    return result.put("literal", value instanceof byte[] bytes ? Base64.getEncoder().encodeToString(bytes) : value.toString());
  }
}
