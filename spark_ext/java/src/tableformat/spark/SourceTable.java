package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** SP-25: the table that a job names by the path of `load`, `save` or `start`: `lake.db.t`, `db.t`, or a location. */
record SourceTable(LakeCatalog catalog, Identifier identifier) {
  private static final String PATH = "path";

  static SourceTable of(CaseInsensitiveStringMap options) {
    String path = options.get(PATH);
    if (path == null || path.isBlank()) {
      throw Errors.invalid("format(\"tableformat\") needs a table: use load(\"lake.db.t\"), or the option path.");
    }
    if (!path.contains("/")) {
      return named(path);
    }
    int cut = path.lastIndexOf('#');
    if (cut < path.lastIndexOf('/')) {
      return at(path);
    }
    // Iceberg's syntax for a metadata table or a state of a table in a path.
    SourceTable table = at(path.substring(0, cut));
    List<String> namespace = new ArrayList<>(Arrays.asList(table.identifier.namespace()));
    namespace.add(table.identifier.name());
    return new SourceTable(
        table.catalog, Identifier.of(namespace.toArray(String[]::new), path.substring(cut + 1)));
  }

  private static SourceTable named(String text) {
    String[] parts = parts(text);
    CatalogManager manager = manager();
    if (parts.length > 1 && manager.isCatalogRegistered(parts[0])) {
      return new SourceTable(lake(manager.catalog(parts[0])), identifier(Arrays.copyOfRange(parts, 1, parts.length)));
    }
    if (parts.length > 1 || manager.currentNamespace().length == 0) {
      return new SourceTable(lake(manager.currentCatalog()), identifier(parts));
    }
    return new SourceTable(lake(manager.currentCatalog()), Identifier.of(manager.currentNamespace(), parts[0]));
  }

  /**
   * The table at the location in one of the session's catalogs. The failure of a catalog is only reported if no other catalog has the
   * table.
   */
  private static SourceTable at(String location) {
    List<String> asked = lakes();
    List<String> failures = new ArrayList<>();
    for (String name : asked) {
      try {
        LakeCatalog catalog = lake(manager().catalog(name));
        JsonNode found = catalog.call("table_at", Json.object().put("location", location)).result();
        if (!found.isNull()) {
          return new SourceTable(catalog, identifier(Json.strings(found)));
        }
      } catch (Exception e) {
        failures.add(name + " did not answer: " + e.getMessage());
      }
    }
    throw Errors.invalid(
        "format(\"tableformat\"): no table is at " + location + " in the catalogs " + String.join(", ", asked)
            + " of the session. Pass the table: load(\"lake.db.t\")."
            + (failures.isEmpty() ? "" : " " + String.join(" ", failures)));
  }

  /** Names of the session's catalogs of this format. */
  private static List<String> lakes() {
    List<String> lakes = new ArrayList<>();
    String prefix = "spark.sql.catalog.";
    var settings = SQLConf.get().getAllConfs().iterator();
    while (settings.hasNext()) {
      var setting = settings.next();
      if (setting._1().startsWith(prefix) && setting._2().equals(LakeCatalog.class.getName())) {
        lakes.add(setting._1().substring(prefix.length()));
      }
    }
    return lakes;
  }

  private static LakeCatalog lake(CatalogPlugin catalog) {
    if (catalog instanceof LakeCatalog lake) {
      return lake;
    }
    throw Errors.invalid(
        "format(\"tableformat\"): " + catalog.name() + " is not a catalog of tableformat. Use a catalog of the session: "
            + "load(\"lake.db.t\").");
  }

  private static CatalogManager manager() {
    return Sessions.active().sessionState().catalogManager();
  }

  private static Identifier identifier(String[] parts) {
    return Identifier.of(Arrays.copyOf(parts, parts.length - 1), parts[parts.length - 1]);
  }

  private static String[] parts(String text) {
    try {
      return Scala.list(Sessions.active().sessionState().sqlParser().parseMultipartIdentifier(text))
          .toArray(String[]::new);
    } catch (ParseException e) {
      throw Errors.invalid(
          "'" + text + "' is not a table name: write 'lake.db.t', and enclose a part with dots or other special characters in `backticks`.");
    }
  }
}
