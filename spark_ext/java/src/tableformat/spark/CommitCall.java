package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.spark.sql.AnalysisException;

/**
 * Calls that commit. Each call names its batch. If the Python process dies before it answers, the call is repeated, but commits only once.
 *
 * <p>A table remembers the last batch of each application. A call must be distinguishable from all others for as long as it may be
 * repeated. Therefore it uses its own application id during that time. This JVM reuses a small number of ids, so that tables do not have to
 * remember one for each commit.
 */
final class CommitCall {
  private static final String JVM = "spark-" + UUID.randomUUID();
  private static final TreeSet<Integer> FREE = new TreeSet<>();
  private static int used = 0;

  private CommitCall() {}

  /** A commit that is repeated only by this call itself. */
  static Sidecar.Answer call(LakeCatalog catalog, String method, ObjectNode arguments, byte[]... parts) {
    int number = take();
    try {
      arguments.put("application_id", JVM + "-" + number).put("batch_id", UUID.randomUUID().toString());
      return catalog.call(method, arguments, parts);
    } finally {
      giveBack(number);
    }
  }

  /** The commit of an epoch of a streaming query. Spark repeats it after a restart. */
  static Sidecar.Answer callEpoch(
      LakeCatalog catalog, String method, ObjectNode arguments, String queryId, long epoch, byte[]... parts) {
    arguments.put("application_id", "spark-stream-" + queryId).put("batch_id", epoch);
    return catalog.call(method, arguments, parts);
  }

  private static synchronized int take() {
    Integer free = FREE.pollFirst();
    return free != null ? free : used++;
  }

  private static synchronized void giveBack(int number) {
    FREE.add(number);
  }

  /** Whether an error of a commit means that nothing was committed, so that the new files can be removed. */
  static boolean isRefusal(Exception error) {
    if (!(error instanceof AnalysisException analysis)) {
      return false;
    }
    String condition = AnalysisErrors.condition(analysis);
    return condition != null && condition.startsWith("TABLEFORMAT_") && !condition.equals("TABLEFORMAT_EXTERNAL_ERROR")
        && !condition.equals("TABLEFORMAT_INTERNAL_ERROR") && !condition.equals("TABLEFORMAT_COMMIT_STATE_UNKNOWN")
        && !condition.equals("TABLEFORMAT_COMMIT_INTERRUPTED");
  }
}
