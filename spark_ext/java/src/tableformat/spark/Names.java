package tableformat.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** Names in SQL syntax. */
final class Names {
  private Names() {}

  static String quoted(String catalog, Identifier identifier) {
    StringBuilder result = new StringBuilder(quotedIfNeeded(catalog));
    for (String part : identifier.namespace()) {
      result.append('.').append(quotedIfNeeded(part));
    }
    return result.append('.').append(quotedIfNeeded(identifier.name())).toString();
  }

  static String quoted(String part) {
    return "`" + part.replace("`", "``") + "`";
  }

  /** A column, as the quoted path of names from the top of the schema. */
  static String quoted(String[] path) {
    return Arrays.stream(path).map(Names::quoted).collect(Collectors.joining("."));
  }

  /** The predicates, with the column names of a statement replaced by the names in the table. */
  static Predicate[] asStored(Predicate[] predicates, String[] columns) {
    return Arrays.stream(predicates).map(predicate -> asStored(predicate, columns)).toArray(Predicate[]::new);
  }

  private static Predicate asStored(Predicate predicate, String[] columns) {
    Expression[] arguments = Arrays.stream(predicate.children()).map(argument -> {
      if (argument instanceof Predicate inner) {
        return asStored(inner, columns);
      }
      return argument instanceof NamedReference reference && reference.fieldNames().length == 1
          ? Expressions.column(quoted(asStored(reference.fieldNames()[0], columns))) : argument;
    }).toArray(Expression[]::new);
    return new Predicate(predicate.name(), arguments);
  }

  /** The column whose name differs at most in case, if there is only one; else the name unchanged. */
  static String asStored(String name, String[] columns) {
    List<String> alike = Arrays.stream(columns).filter(name::equalsIgnoreCase).toList();
    return alike.size() == 1 ? alike.get(0) : name;
  }

  /** SP-63: raises an error if the session does not distinguish the names of two columns or partition fields of the table. */
  static void refuseAlike(String table, String[] names) {
    if (Sessions.active().sessionState().conf().caseSensitiveAnalysis()) {
      return;
    }
    Map<String, String> known = new HashMap<>();
    for (String name : names) {
      String other = known.putIfAbsent(name.toLowerCase(Locale.ROOT), name);
      if (other != null) {
        throw Errors.unsupported(table + " has columns " + quoted(other) + " and " + quoted(name)
            + ", which differ only in case, and this session does not distinguish case. Nothing was read or changed. SET "
            + "spark.sql.caseSensitive = true, or rename one of them in Python with table.update_schema().");
      }
    }
  }

  private static String quotedIfNeeded(String part) {
    return part.matches("[a-zA-Z0-9_]+") && !part.matches("\\d+") ? part : quoted(part);
  }
}
