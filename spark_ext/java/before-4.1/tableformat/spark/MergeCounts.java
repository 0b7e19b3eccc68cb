package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Spark before 4.1 does not tell a commit what a MERGE did. */
interface MergeCounts extends DeltaBatchWrite {
  void commit(WriterCommitMessage[] messages, ObjectNode counts);

  @Override default void commit(WriterCommitMessage[] messages) {
    commit(messages, Json.object());
  }
}
