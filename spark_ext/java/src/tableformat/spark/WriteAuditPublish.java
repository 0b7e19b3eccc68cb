package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.internal.SQLConf;

/** The session's settings for writes that are audited before they are published. Python knows which tables support them. */
final class WriteAuditPublish {
  private WriteAuditPublish() {}

  /** Whether the session names a branch. */
  static boolean namesBranch() {
    return SQLConf.get().getConfString("spark.wap.branch", null) != null;
  }

  /** Adds the settings of the session to the arguments. */
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
