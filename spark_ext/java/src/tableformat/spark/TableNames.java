package tableformat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.Identifier;

/** Tables that a statement names by a string: `'db.t'`, `'lake.db.t'`, or `'t'` in the session's current namespace. */
final class TableNames {
  private TableNames() {}

  /** PR-2: the table in the catalog. Parts with dots or other special characters are quoted with backticks, as in SQL. */
  static Identifier parse(String catalog, String text) {
    if (text.isBlank()) {
      throw Errors.invalid("the argument table is empty: table => 'namespace.table'.");
    }
    var spark = Sessions.active();
    String[] parts = parts(text);
    if (parts.length > 1 && parts[0].equals(catalog)) {
      parts = Arrays.copyOfRange(parts, 1, parts.length);
    } else if (parts.length > 2 && spark.sessionState().catalogManager().isCatalogRegistered(parts[0])) {
      throw Errors.invalid(
          "table " + text + " is in the catalog " + parts[0] + ": call the procedure of that catalog instead of " + catalog + ".");
    }
    if (parts.length > 1) {
      return Identifier.of(Arrays.copyOf(parts, parts.length - 1), parts[parts.length - 1]);
    }
    var manager = spark.sessionState().catalogManager();
    if (!manager.currentCatalog().name().equals(catalog) || manager.currentNamespace().length == 0) {
      throw Errors.invalid("table " + text + " needs its namespace: table => 'namespace." + text + "'.");
    }
    return Identifier.of(manager.currentNamespace(), parts[0]);
  }

  /** A table of one of our catalogs, by the parts of its name in a statement; null if it is in another catalog. */
  static Target ours(List<String> parts) {
    var manager = Sessions.active().sessionState().catalogManager();
    boolean namesCatalog = parts.size() > 1 && manager.isCatalogRegistered(parts.get(0));
    var catalog = namesCatalog ? manager.catalog(parts.get(0)) : manager.currentCatalog();
    if (!(catalog instanceof LakeCatalog lake)) {
      return null;
    }
    List<String> rest = namesCatalog ? parts.subList(1, parts.size()) : parts;
    int last = rest.size() - 1;
    String[] namespace = last == 0 && !namesCatalog
        ? manager.currentNamespace() : rest.subList(0, last).toArray(String[]::new);
    return new Target(lake, Identifier.of(namespace, rest.get(last)));
  }

  /** A table and its catalog. */
  record Target(LakeCatalog catalog, Identifier identifier) {}

  static String[] parts(String text) {
    try {
      return Scala.list(Sessions.active().sessionState().sqlParser().parseMultipartIdentifier(text))
          .toArray(String[]::new);
    } catch (ParseException e) {
      throw Errors.invalid(
          "'" + text + "' is not a table name: write 'namespace.table', and enclose a part with dots, spaces or other special characters in "
              + "`backticks`.");
    }
  }

  /** Makes Spark read the table again if it has cached rows of it. */
  static void refreshCached(LakeCatalog catalog, Identifier table) {
    if (!Sessions.active().sharedState().cacheManager().isEmpty()) {
      CachedRows.refresh(nameParts(catalog, table));
    }
  }

  private static List<String> nameParts(LakeCatalog catalog, Identifier table) {
    List<String> parts = new ArrayList<>();
    parts.add(catalog.name());
    parts.addAll(Arrays.asList(table.namespace()));
    parts.add(table.name());
    return parts;
  }
}
