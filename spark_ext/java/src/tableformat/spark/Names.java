package tableformat.spark;

import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.catalog.Identifier;

/** Names as SQL writes them. */
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

  /** A column by the names from the top of the schema down. */
  static String quoted(String[] path) {
    return Arrays.stream(path).map(Names::quoted).collect(Collectors.joining("."));
  }

  private static String quotedIfNeeded(String part) {
    return part.matches("[a-zA-Z0-9_]+") && !part.matches("\\d+") ? part : quoted(part);
  }
}
