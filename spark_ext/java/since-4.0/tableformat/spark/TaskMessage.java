package tableformat.spark;

import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriterCommitMessage;

/**
 * Bytes in a message of one of Spark's own classes. If a jar is added to a running session, several class loaders load it, and each of them
 * would have its own version of a class of ours.
 */
final class TaskMessage {
  private TaskMessage() {}

  static WriterCommitMessage of(byte[] bytes) {
    return new PythonWriterCommitMessage(bytes);
  }

  static byte[] bytes(WriterCommitMessage message) {
    return ((PythonWriterCommitMessage) message).pickledMessage();
  }
}
