package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The options of a batch read. Those that choose a state of the table were heeded when it was loaded. */
final class ReadOptions {
  private ReadOptions() {}

  /** Python knows the names. */
  static void check(LakeCatalog catalog, JsonNode pin, CaseInsensitiveStringMap options) {
    if (!options.isEmpty()) {
      ObjectNode arguments = Json.object().set("pin", pin);
      catalog.call("check_read", arguments.set("options", Json.object(options.asCaseSensitiveMap())));
    }
  }
}
