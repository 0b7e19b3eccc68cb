package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The options of a batch read. Those that choose a state of the table are heeded before it is scanned. */
final class ReadOptions {
  /** Those that choose a state, as in `read_options.py`. */
  static final Set<String> OF_STATES = Set.of("snapshot-id", "as-of-timestamp", "branch", "tag");

  private ReadOptions() {}

  /** Python knows the names. */
  static void check(LakeCatalog catalog, JsonNode pin, CaseInsensitiveStringMap options) {
    TimeTravelOptions.check(options);
    if (!options.isEmpty()) {
      ObjectNode arguments = Json.object().set("pin", pin);
      catalog.call("check_read", arguments.set("options", Json.object(options.asCaseSensitiveMap())));
    }
  }
}
