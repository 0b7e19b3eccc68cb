package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The options of a batch read. Those that choose a state of the table are heeded before it is scanned. */
final class ReadOptions {
  /** Those that choose a state, as in `read_options.py`. */
  static final Set<String> OF_STATES = Set.of("snapshot-id", "as-of-timestamp", "branch", "tag");

  /** Those that choose what was appended between two snapshots, as in `appended_files.py`. */
  private static final Set<String> OF_APPENDS = Set.of("start-snapshot-id", "end-snapshot-id");

  private ReadOptions() {}

  /** Whether the rows of some appends are read, and not those of a state. */
  static boolean areOfAppends(CaseInsensitiveStringMap options) {
    return OF_APPENDS.stream().anyMatch(options::containsKey);
  }

  /** The arguments of a plan, and which appends are read. */
  static ObjectNode added(ObjectNode arguments, CaseInsensitiveStringMap options) {
    if (areOfAppends(options)) {
      ObjectNode appends = arguments.putObject("appends");
      OF_APPENDS.stream().filter(options::containsKey).forEach(name -> appends.put(name, options.get(name)));
    }
    return arguments;
  }

  /**
   * Bytes that a task reads, where no option says it as the session or the table does; 0 where Spark decides. Python has
   * checked the number.
   */
  static long splitSize(CaseInsensitiveStringMap options, JsonNode ofTable) {
    return options.getLong("split-size", SessionSettings.splitSize(ofTable.path("split-size").asLong(0)));
  }

  /** Bytes that opening a file is taken to cost, likewise. */
  static long fileOpenCost(CaseInsensitiveStringMap options, JsonNode ofTable) {
    return options.getLong("file-open-cost", ofTable.path("file-open-cost").asLong(0));
  }

  /** Python knows the names. */
  static void check(LakeCatalog catalog, JsonNode pin, CaseInsensitiveStringMap options) {
    TimeTravelOptions.check(options);
    SessionSettings.check(catalog);
    if (!options.isEmpty()) {
      ObjectNode arguments = Json.object().set("pin", pin);
      catalog.call("check_read", arguments.set("options", Json.object(options.asCaseSensitiveMap())));
    }
  }
}
