package tableformat.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** What a task tells the commit: bytes whose form `task_reports.py` states. */
final class TaskReport {
  private TaskReport() {}

  static WriterCommitMessage of(List<DataFiles.NewDataFile> files, Map<String, byte[]> positions, byte[] prefixes)
      throws IOException {
    ObjectNode header = Json.object();
    List<byte[]> pieces = new ArrayList<>();
    ArrayNode described = header.putArray("files");
    for (DataFiles.NewDataFile file : files) {
      DataFileWriter.Finished finished = file.file();
      ObjectNode json = described.addObject().put("path", finished.location()).put("size", finished.sizeBytes());
      ArrayNode partition = json.put("footer", finished.footer().length).putArray("partition");
      for (Object value : file.partition()) {
        PartitionField.write(partition, value);
      }
      pieces.add(finished.footer());
    }
    ArrayNode deleted = header.putArray("positions");
    positions.forEach((path, bitmap) -> {
      deleted.addObject().put("path", path).put("bytes", bitmap.length);
      pieces.add(bitmap);
    });
    header.put("prefixes", prefixes.length);
    pieces.add(prefixes);
    return TaskMessage.of(bytes(header, pieces));
  }

  private static byte[] bytes(ObjectNode header, List<byte[]> pieces) throws IOException {
    byte[] text = Json.bytes(header);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream output = new DataOutputStream(bytes);
    output.writeInt(text.length);
    output.write(text);
    for (byte[] piece : pieces) {
      output.write(piece);
    }
    return bytes.toByteArray();
  }

  /** The reports of the tasks that ended, for Python. */
  static byte[][] parts(WriterCommitMessage[] messages) {
    List<byte[]> parts = new ArrayList<>();
    for (WriterCommitMessage message : messages) {
      if (message != null) {
        parts.add(TaskMessage.bytes(message));
      }
    }
    return parts.toArray(new byte[0][]);
  }
}
