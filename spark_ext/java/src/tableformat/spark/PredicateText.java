package tableformat.spark;

import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StringType;

/**
 * Predicates in the form that EXPLAIN displays for Iceberg's scans: `dep IS NOT NULL, dep = 'a', (id = 1 OR id = 5)`. Timestamps and dates
 * are displayed as the numbers that are stored.
 */
final class PredicateText {
  private PredicateText() {}

  static String of(Predicate[] predicates) {
    return Arrays.stream(predicates).map(PredicateText::of).collect(Collectors.joining(", "));
  }

  private static String of(Expression expression) {
    if (expression instanceof NamedReference reference) {
      return String.join(".", reference.fieldNames());
    }
    if (expression instanceof Literal<?> literal) {
      return of(literal);
    }
    if (expression instanceof UserDefinedScalarFunc call) {
      return call.name() + "(" + joined(call.children()) + ")";
    }
    return expression instanceof Predicate predicate ? of(predicate) : expression.toString();
  }

  private static String of(Predicate predicate) {
    Expression[] children = predicate.children();
    if (predicate.name().equals("=") && isNan(children[1])) {
      return "is_nan(" + of(children[0]) + ")";
    }
    return switch (predicate.name()) {
      case "AND", "OR" -> "(" + of(children[0]) + " " + predicate.name() + " " + of(children[1]) + ")";
      case "NOT" -> negated(children[0]);
      case "IS_NULL" -> of(children[0]) + " IS NULL";
      case "IS_NOT_NULL" -> of(children[0]) + " IS NOT NULL";
      case "IN" -> of(children[0]) + " IN (" + joined(Arrays.copyOfRange(children, 1, children.length)) + ")";
      case "STARTS_WITH" -> of(children[0]) + " LIKE '" + unquoted(children[1]) + "%'";
      case "ENDS_WITH" -> of(children[0]) + " LIKE '%" + unquoted(children[1]) + "'";
      case "CONTAINS" -> of(children[0]) + " LIKE '%" + unquoted(children[1]) + "%'";
      case "<>" -> of(children[0]) + " != " + of(children[1]);
      case "=", "<", "<=", ">", ">=", "<=>" -> of(children[0]) + " " + predicate.name() + " " + of(children[1]);
      default -> predicate.toString();
    };
  }

  private static boolean isNan(Expression expression) {
    return expression instanceof Literal<?> literal
        && (Double.valueOf(Double.NaN).equals(literal.value()) || Float.valueOf(Float.NaN).equals(literal.value()));
  }

  private static String negated(Expression expression) {
    if (expression instanceof Predicate in && in.name().equals("IN")) {
      Expression[] children = in.children();
      return of(children[0]) + " NOT IN (" + joined(Arrays.copyOfRange(children, 1, children.length)) + ")";
    }
    return "NOT (" + of(expression) + ")";
  }

  private static String joined(Expression[] expressions) {
    return Arrays.stream(expressions).map(PredicateText::of).collect(Collectors.joining(", "));
  }

  private static String unquoted(Expression text) {
    return text instanceof Literal<?> literal ? String.valueOf(literal.value()) : of(text);
  }

  private static String of(Literal<?> literal) {
    if (literal.value() instanceof byte[] bytes) {
      StringBuilder hex = new StringBuilder();
      for (byte each : bytes) {
        hex.append(String.format("%02X", each));
      }
      return "X'" + hex + "'";
    }
    return literal.dataType() instanceof StringType && literal.value() != null
        ? "'" + literal.value() + "'" : String.valueOf(literal.value());
  }
}
