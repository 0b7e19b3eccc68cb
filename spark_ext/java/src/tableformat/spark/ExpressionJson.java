package tableformat.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc;

/**
 * Spark's expressions as JSON.
 *
 * <pre>
 * {"column": ["a", "b"]}   {"literal": "12", "type": "long"}   {"operator": "AND", "arguments": [...]}
 * {"transform": "bucket", "arguments": [...]}   {"unknown": "what Spark calls it"}
 * </pre>
 *
 * A call of one of the catalog's functions is the transform of its name. Literals are as in ValueJson.
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
      return ValueJson.literal(literal.value(), literal.dataType());
    }
    if (expression instanceof Transform transform) {
      return Json.object().put("transform", transform.name()).set("arguments", of(transform.arguments()));
    }
    if (expression instanceof UserDefinedScalarFunc call && Transforms.isOurs(call)) {
      return Json.object().put("transform", call.name()).set("arguments", of(call.children()));
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
}
