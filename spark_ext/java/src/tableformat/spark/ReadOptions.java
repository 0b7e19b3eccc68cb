package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The options of a batch read. Options that select a state of the table are handled before it is scanned. */
final class ReadOptions {
  /** Options that select a state, as in `read_options.py`. */
  static final Set<String> OF_STATES = Set.of("snapshot-id", "as-of-timestamp", "branch", "tag");

  /** Options that select the rows appended between two snapshots, as in `appended_files.py`. */
  private static final Set<String> OF_APPENDS = Set.of("start-snapshot-id", "end-snapshot-id");

  private ReadOptions() {}

  /** Whether the rows of some appends are read, rather than a state of the table. */
  static boolean areOfAppends(CaseInsensitiveStringMap options) {
    return OF_APPENDS.stream().anyMatch(options::containsKey);
  }

  /** Adds to the arguments of a plan which appends are read. */
  static ObjectNode added(ObjectNode arguments, CaseInsensitiveStringMap options) {
    if (areOfAppends(options)) {
      ObjectNode appends = arguments.putObject("appends");
      OF_APPENDS.stream().filter(options::containsKey).forEach(name -> appends.put(name, options.get(name)));
    }
    return arguments;
  }

  /**
   * The number of bytes that a task reads, from the option, the session or the table, in this order; 0 if Spark decides. Python has
   * validated the number.
   */
  static long splitSize(CaseInsensitiveStringMap options, JsonNode ofTable) {
    return options.getLong("split-size", SessionSettings.splitSize(ofTable.path("split-size").asLong(0)));
  }

  /** The estimated cost of opening a file, in bytes; from the option or the table, or 0 if Spark decides. */
  static long fileOpenCost(CaseInsensitiveStringMap options, JsonNode ofTable) {
    return options.getLong("file-open-cost", ofTable.path("file-open-cost").asLong(0));
  }

  /** Validates the options; Python knows their names. */
  static void check(LakeCatalog catalog, JsonNode pin, CaseInsensitiveStringMap options) {
    TimeTravelOptions.check(options);
    SessionSettings.check(catalog);
    if (!options.isEmpty()) {
      ObjectNode arguments = Json.object().set("pin", pin);
      catalog.call("check_read", arguments.set("options", Json.object(options.asCaseSensitiveMap())));
    }
  }
}
