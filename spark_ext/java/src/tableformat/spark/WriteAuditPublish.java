package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.internal.SQLConf;

/** What the session says of where writes go that are looked at before others see them; Python knows which tables listen. */
final class WriteAuditPublish {
  private WriteAuditPublish() {}

  /** Whether the session names a branch. */
  static boolean namesBranch() {
    return SQLConf.get().getConfString("spark.wap.branch", null) != null;
  }

  /** The arguments, and what the session says. */
  static ObjectNode added(ObjectNode arguments) {
    put(arguments, "wap_branch", "spark.wap.branch");
    put(arguments, "wap_id", "spark.wap.id");
    return arguments;
  }

  private static void put(ObjectNode arguments, String name, String conf) {
    String value = SQLConf.get().getConfString(conf, null);
    if (value != null) {
      arguments.put(name, value);
    }
  }
}
