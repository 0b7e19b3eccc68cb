package tableformat.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc;

/**
 * Converts Spark expressions to JSON.
 *
 * <pre>
 * {"column": ["a", "b"]}   {"literal": "12", "type": "long"}   {"operator": "AND", "arguments": [...]}
 * {"transform": "bucket", "arguments": [...]}   {"unknown": "what Spark calls it"}
 * </pre>
 *
 * A call of a catalog function becomes the transform of that name. Literals are as in ValueJson.
 *
 * <p>SP-100: a chain of the same operator becomes a balanced tree. Expressions that are nested deeper than DEPTH_MAX become unknown.
 */
final class ExpressionJson {
  /** Limited because Python traverses conditions recursively. */
  private static final int DEPTH_MAX = 80;

  private ExpressionJson() {}

  static ArrayNode of(Expression[] expressions) {
    return of(expressions, DEPTH_MAX);
  }

  static ObjectNode of(Expression expression) {
    return of(expression, DEPTH_MAX);
  }

  private static ArrayNode of(Expression[] expressions, int depth) {
    ArrayNode result = Json.array();
    for (Expression expression : expressions) {
      result.add(of(expression, depth));
    }
    return result;
  }

  private static ObjectNode of(Expression expression, int depth) {
    if (expression instanceof NamedReference reference) {
      return Json.object().set("column", Json.array(reference.fieldNames()));
    }
    if (expression instanceof Literal<?> literal) {
      return ValueJson.literal(literal.value(), literal.dataType());
    }
    if (depth == 0) {
      return tooDeep();
    }
    if (expression instanceof Transform transform) {
      return Json.object().put("transform", transform.name()).set("arguments", of(transform.arguments(), depth - 1));
    }
    if (expression instanceof UserDefinedScalarFunc call && Transforms.isOurs(call)) {
      return Json.object().put("transform", call.name()).set("arguments", of(call.children(), depth - 1));
    }
    if (expression instanceof Cast cast) {
      ObjectNode result = Json.object().put("operator", "CAST").set("arguments", of(cast.children(), depth - 1));
      return result.set("to", Json.type(cast.dataType()));
    }
    if (expression instanceof GeneralScalarExpression scalar) {
      return isChain(scalar) ? chain(scalar.name(), operands(scalar), depth)
          : Json.object().put("operator", scalar.name()).set("arguments", of(scalar.children(), depth - 1));
    }
    return Json.object().put("unknown", expression.toString());
  }

  private static ObjectNode tooDeep() {
    return Json.object().put("unknown", "an expression that is nested too deeply");
  }

  private static boolean isChain(GeneralScalarExpression scalar) {
    return scalar.name().equals("AND") || scalar.name().equals("OR");
  }

  /** The operands of a chain of the same operator at all levels, in order. */
  private static List<Expression> operands(GeneralScalarExpression chain) {
    List<Expression> operands = new ArrayList<>();
    Deque<Expression> open = new ArrayDeque<>(List.of(chain));
    while (!open.isEmpty()) {
      Expression next = open.pop();
      if (next instanceof GeneralScalarExpression scalar && scalar.name().equals(chain.name())) {
        for (int i = scalar.children().length - 1; i >= 0; i--) {
          open.push(scalar.children()[i]);
        }
      } else {
        operands.add(next);
      }
    }
    return operands;
  }

  private static ObjectNode chain(String operator, List<Expression> operands, int depth) {
    if (operands.size() == 1) {
      return of(operands.get(0), depth);
    }
    if (depth == 0) {
      return tooDeep();
    }
    int half = operands.size() / 2;
    ArrayNode arguments = Json.array();
    arguments.add(chain(operator, operands.subList(0, half), depth - 1));
    arguments.add(chain(operator, operands.subList(half, operands.size()), depth - 1));
    return Json.object().put("operator", operator).set("arguments", arguments);
  }
}
