package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.internal.SQLConf;

/** Settings of a session: Iceberg's, which stand in for options (SP-64) and of which Python knows which there are, and others put right. */
final class SessionSettings {
  private static final String PREFIX = "spark.sql.iceberg.";

  private static final String SPLIT_SIZE = "read.split-size";

  /** What Python has seen last: it is asked again when something else is set. */
  private static volatile Map<String, String> checked = Map.of();

  private SessionSettings() {}

  /** The settings with some of them changed, where they are otherwise; also in a task, whose own cannot be changed. */
  static SQLConf with(Map<String, String> changes, SQLConf settings) {
    if (changes.entrySet().stream().allMatch(each -> settings.getConfString(each.getKey()).equals(each.getValue()))) {
      return settings;
    }
    SQLConf changed = new SQLConf();
    Scala.entries(settings.getAllConfs()).forEach(changed::setConfString);
    changes.forEach(changed::setConfString);
    return changed;
  }

  /** Those that are set, by what comes behind Iceberg's prefix. */
  private static Map<String, String> all() {
    Map<String, String> settings = new TreeMap<>();
    Scala.entries(SQLConf.get().getAllConfs()).forEach((name, value) -> {
      if (name.startsWith(PREFIX) && !value.isEmpty()) {
        settings.put(name.substring(PREFIX.length()), value);
      }
    });
    return settings;
  }

  /** The arguments of a write's plan, and the settings. */
  static ObjectNode added(ObjectNode arguments) {
    return arguments.set("settings", Json.object(all()));
  }

  /** The arguments of a DELETE's plan, and how the session wants it to find its rows (SP-114); null: not stated. */
  static ObjectNode withDeleteMode(LakeCatalog catalog, ObjectNode arguments) {
    String mode = SQLConf.get().getConfString("spark.sql.catalog." + catalog.name() + ".delete-mode", "");
    return mode.isEmpty() ? arguments.putNull("mode") : arguments.put("mode", mode);
  }

  /** Before a read: what has no effect is told of, and a value that is none is an error. */
  static void check(LakeCatalog catalog) {
    Map<String, String> settings = all();
    if (!settings.isEmpty() && !settings.equals(checked)) {
      catalog.call("check_settings", Json.object().set("settings", Json.object(settings)));
      checked = settings;
    }
  }

  /** Bytes that a task reads, where the session says it; else what is given. */
  static long splitSize(long otherwise) {
    String size = all().get(SPLIT_SIZE);
    return size == null ? otherwise : Long.parseLong(size);
  }
}
