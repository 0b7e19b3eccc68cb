package tableformat.spark;

import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.datasources.WriteTaskResult;

/**
 * Bytes in a message of Spark's own class: one of ours would be another class to each of the class loaders that a jar
 * added to a running session is loaded by.
 */
final class TaskMessage {
  private TaskMessage() {}

  static WriterCommitMessage of(byte[] bytes) {
    return new WriteTaskResult(new TaskCommitMessage(bytes), null);
  }

  static byte[] bytes(WriterCommitMessage message) {
    return (byte[]) ((WriteTaskResult) message).commitMsg().obj();
  }
}
