package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** `SELECT ... CHANGES FROM VERSION ...`, and streams of changes. */
interface Changelogs extends TableCatalog {
  @Override default Changelog loadChangelog(
      Identifier identifier, ChangelogContext context, CaseInsensitiveStringMap options) throws NoSuchTableException {
    LakeCatalog catalog = (LakeCatalog) this;
    ObjectNode arguments = Json.table(identifier).set("bounds", LakeChangelog.bounds(context.range()));
    arguments.set("options", Json.object(options.asCaseSensitiveMap()));
    JsonNode description = catalog.callAbout(identifier, "load_changes", arguments);
    return new LakeChangelog(new LakeTable(catalog, identifier, description), context, description);
  }
}
