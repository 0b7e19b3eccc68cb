package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Before 4.1, Spark does not pass the row counts of a MERGE to the commit. */
interface MergeCounts extends DeltaBatchWrite {
  void commit(WriterCommitMessage[] messages, ObjectNode counts);

  @Override default void commit(WriterCommitMessage[] messages) {
    commit(messages, Json.object());
  }
}
