package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.MergeSummary;
import org.apache.spark.sql.connector.write.WriteSummary;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A commit that gets the number of target rows that a MERGE copied, deleted, updated and inserted. */
interface MergeCounts extends DeltaBatchWrite {
  /** `counts` has the numbers by name; it is empty if none are known. */
  void commit(WriterCommitMessage[] messages, ObjectNode counts);

  @Override default void commit(WriterCommitMessage[] messages) {
    commit(messages, Json.object());
  }

  @Override default void commit(WriterCommitMessage[] messages, WriteSummary summary) {
    ObjectNode counts = Json.object();
    if (summary instanceof MergeSummary merge) {
      put(counts, "copied", merge.numTargetRowsCopied());
      put(counts, "deleted", merge.numTargetRowsDeleted());
      put(counts, "updated", merge.numTargetRowsUpdated());
      put(counts, "inserted", merge.numTargetRowsInserted());
      put(counts, "matched-updated", merge.numTargetRowsMatchedUpdated());
      put(counts, "matched-deleted", merge.numTargetRowsMatchedDeleted());
      put(counts, "not-matched-by-source-updated", merge.numTargetRowsNotMatchedBySourceUpdated());
      put(counts, "not-matched-by-source-deleted", merge.numTargetRowsNotMatchedBySourceDeleted());
    }
    commit(messages, counts);
  }

  /** Spark reports -1 for unknown numbers. */
  private static void put(ObjectNode counts, String name, long count) {
    if (count >= 0) {
      counts.put(name, count);
    }
  }
}
