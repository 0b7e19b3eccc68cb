package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.internal.SQLConf;

/** Settings of a session. Those of Iceberg are defaults for options (SP-64); Python knows which exist. Others are overridden. */
final class SessionSettings {
  private static final String PREFIX = "spark.sql.iceberg.";

  private static final String SPLIT_SIZE = "read.split-size";

  /** The settings that Python checked last. Different settings are checked again. */
  private static volatile Map<String, String> checked = Map.of();

  private SessionSettings() {}

  /**
   * A copy of the settings with the changes, or the settings themselves if they do not differ. Also used in tasks, whose own settings
   * cannot be changed.
   */
  static SQLConf with(Map<String, String> changes, SQLConf settings) {
    if (changes.entrySet().stream().allMatch(each -> settings.getConfString(each.getKey()).equals(each.getValue()))) {
      return settings;
    }
    SQLConf changed = new SQLConf();
    Scala.entries(settings.getAllConfs()).forEach(changed::setConfString);
    changes.forEach(changed::setConfString);
    return changed;
  }

  /** Iceberg's settings that are set, by the name after Iceberg's prefix. */
  private static Map<String, String> all() {
    Map<String, String> settings = new TreeMap<>();
    Scala.entries(SQLConf.get().getAllConfs()).forEach((name, value) -> {
      if (name.startsWith(PREFIX) && !value.isEmpty()) {
        settings.put(name.substring(PREFIX.length()), value);
      }
    });
    return settings;
  }

  /** Adds the settings to the arguments for planning a write. */
  static ObjectNode added(ObjectNode arguments) {
    return arguments.set("settings", Json.object(all()));
  }

  /** Adds to the arguments for planning a DELETE how the session wants it to find its rows (SP-114); null if not set. */
  static ObjectNode withDeleteMode(LakeCatalog catalog, ObjectNode arguments) {
    String mode = SQLConf.get().getConfString("spark.sql.catalog." + catalog.name() + ".delete-mode", "");
    return mode.isEmpty() ? arguments.putNull("mode") : arguments.put("mode", mode);
  }

  /** Called before a read. Settings without effect are reported, and invalid values raise an error. */
  static void check(LakeCatalog catalog) {
    Map<String, String> settings = all();
    if (!settings.isEmpty() && !settings.equals(checked)) {
      catalog.call("check_settings", Json.object().set("settings", Json.object(settings)));
      checked = settings;
    }
  }

  /** The number of bytes that a task reads according to the session; `otherwise` if it is not set. */
  static long splitSize(long otherwise) {
    String size = all().get(SPLIT_SIZE);
    return size == null ? otherwise : Long.parseLong(size);
  }
}
