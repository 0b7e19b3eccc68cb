package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.RelationCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableContext;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Options that select a state of a table, as in `read_options.py`. Since 4.3, Spark loads the table with them. */
interface StateOptions extends RelationCatalog {
  /** Options of writes are handled when the write is planned, not here. */
  @Override default Table loadTable(Identifier identifier, TableContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    if (options.isEmpty() || !context.writePrivileges().isEmpty()) {
      return RelationCatalog.super.loadTable(identifier, context, options);
    }
    LakeCatalog catalog = (LakeCatalog) this;
    if (context.timeTravel().isPresent()) {
      throw Errors.invalid(
          Names.quoted(name(), identifier) + ": both " + String.join(" and ", options.keySet())
              + " and VERSION AS OF or TIMESTAMP AS OF choose a state of the table; use only one of them.");
    }
    return catalog.load(identifier, Json.table(identifier).set("options", Json.object(options)));
  }

  @Override default Set<String> tableStateOptionKeys() {
    return ReadOptions.OF_STATES;
  }

  /** Options that determine which changes are returned. */
  @Override default Set<String> changelogStateOptionKeys() {
    return Set.of("branch");
  }

  /** The table to scan. It was already loaded with the options. */
  static LakeTable chosen(LakeTable loaded, CaseInsensitiveStringMap options) {
    return loaded;
  }

  /** The same for a metadata table. */
  static JsonNode chosenPin(LakeCatalog catalog, Identifier identifier, JsonNode pin, CaseInsensitiveStringMap options) {
    return pin;
  }
}
