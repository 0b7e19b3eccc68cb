package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import scala.Option;

/** Existing files that Spark knows, in the form of `source_files.py`: `parquet`.`path`, or a table of Spark's session catalog. */
final class SourceTables {
  private static final Set<String> FORMATS = Set.of("parquet", "orc", "avro");
  private static final String SESSION_CATALOG = "spark_catalog";

  private SourceTables() {}

  static ObjectNode of(String text) {
    List<String> parts = List.of(TableNames.parts(text));
    if (parts.size() == 2 && FORMATS.contains(parts.get(0).toLowerCase(Locale.ROOT))) {
      return Json.object().put("format", parts.get(0)).put("path", qualified(parts.get(1)));
    }
    var session = Sessions.active().sessionState();
    if (parts.size() > 1 && parts.get(0).equals(SESSION_CATALOG)) {
      parts = parts.subList(1, parts.size());
    } else if (parts.size() > 1 && session.catalogManager().isCatalogRegistered(parts.get(0))) {
      throw Errors.unsupported(
          text + " is in the catalog " + parts.get(0) + ", but files can be added only from tables of Spark's session catalog, "
              + SESSION_CATALOG + ". For a table that has its own metadata, use a branch, register_table, or "
              + "CREATE TABLE ... AS SELECT.");
    }
    if (parts.size() > 2) {
      throw Errors.invalid(text + " is not a table of Spark's session catalog: write 'database.table'.");
    }
    SessionCatalog catalog = session.catalog();
    TableIdentifier name = parts.size() == 2
        ? new TableIdentifier(parts.get(1), Option.apply(parts.get(0)))
        : new TableIdentifier(parts.get(0), Option.apply(catalog.getCurrentDatabase()));
    try {
      return described(catalog, catalog.getTableMetadata(name));
    } catch (Exception e) {
      throw Errors.unchecked(e);
    }
  }

  private static ObjectNode described(SessionCatalog catalog, CatalogTable table) {
    if (table.tableType().equals(CatalogTableType.VIEW()) || table.provider().isEmpty()) {
      throw Errors.invalid(table.identifier().unquotedString() + " is a view, which has no files.");
    }
    ObjectNode result = Json.object().put("name", table.identifier().unquotedString()).put("format", format(table));
    result.set("columns", Json.type(table.schema()).get("fields"));
    result.set("partition_columns", Json.array(Scala.list(table.partitionColumnNames()).toArray(String[]::new)));
    result.put("location", text(table.location())).put("bucketed", table.bucketSpec().isDefined());
    boolean hasPartitions = table.partitionColumnNames().nonEmpty() && table.tracksPartitionsInCatalog();
    return hasPartitions ? result.set("partitions", partitions(catalog, table)) : result.putNull("partitions");
  }

  /** The file format. For a Hive table, it is derived from the SerDe. */
  private static String format(CatalogTable table) {
    String provider = table.provider().get().toLowerCase(Locale.ROOT);
    if (!provider.equals("hive")) {
      return provider;
    }
    String serde = table.storage().serde().getOrElse(() -> provider).toLowerCase(Locale.ROOT);
    return FORMATS.stream().filter(serde::contains).findFirst().orElse(serde);
  }

  private static ArrayNode partitions(SessionCatalog catalog, CatalogTable table) {
    ArrayNode result = Json.array();
    for (CatalogTablePartition partition : Scala.list(catalog.listPartitions(table.identifier(), Option.empty()))) {
      ObjectNode values = Json.object();
      for (Map.Entry<String, String> value : Scala.entries(partition.spec()).entrySet()) {
        values.put(value.getKey(), value.getValue());
      }
      result.addObject().put("location", text(partition.location())).set("values", values);
    }
    return result;
  }

  /** The location without percent-encoding, in the form in which files are opened. */
  private static String text(URI location) {
    return new Path(location).toString();
  }

  /** The path with a scheme. A path without one is in Spark's default file system. */
  private static String qualified(String path) {
    Path found = new Path(path);
    try {
      return found.getFileSystem(Sessions.active().sessionState().newHadoopConf()).makeQualified(found).toString();
    } catch (java.io.IOException e) {
      throw Errors.external("the file system of " + path + " cannot be opened: " + e.getMessage(), e);
    }
  }
}
