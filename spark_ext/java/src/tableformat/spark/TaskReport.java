package tableformat.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.OutputMetrics;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** The message of a task to the commit, as bytes in the format that `task_reports.py` defines. */
final class TaskReport {
  private TaskReport() {}

  static WriterCommitMessage of(
      List<DataFiles.NewDataFile> files, Map<String, byte[]> positions, byte[] prefixes, RefusedRows refusedRows)
      throws IOException {
    return of(Json.object(), files, positions, prefixes, refusedRows);
  }

  /** `header` has the other contents of the report. */
  static WriterCommitMessage of(
      ObjectNode header, List<DataFiles.NewDataFile> files, Map<String, byte[]> positions, byte[] prefixes,
      RefusedRows refusedRows)
      throws IOException {
    countOutput(files);
    List<byte[]> pieces = new ArrayList<>();
    ArrayNode described = header.putArray("files");
    for (DataFiles.NewDataFile file : files) {
      ArrayNode partition = describe(described.addObject(), file.file(), pieces).putArray("partition");
      for (Object value : file.partition()) {
        PartitionField.write(partition, value);
      }
    }
    ArrayNode deleted = header.putArray("positions");
    positions.forEach((path, bitmap) -> {
      deleted.addObject().put("path", path).put("bytes", bitmap.length);
      pieces.add(bitmap);
    });
    header.put("prefixes", prefixes.length);
    pieces.add(prefixes);
    RefusedRows.Report refused = refusedRows.finish();
    if (refused != null) {
      ObjectNode json = header.putObject("refused").put("rows", refused.seenCount()).put("refused", refused.refusedCount());
      json.put("samples", refused.samples().length);
      pieces.add(refused.samples());
      if (refused.file() != null) {
        describe(json.putObject("file"), refused.file(), pieces);
      }
    }
    return TaskMessage.of(bytes(header, pieces));
  }

  /** SP-51: counts bytes and rows written, which Spark displays for each task and stage. */
  private static void countOutput(List<DataFiles.NewDataFile> files) {
    OutputMetrics output = TaskContext.get().taskMetrics().outputMetrics();
    output.setBytesWritten(files.stream().mapToLong(file -> file.file().sizeBytes()).sum());
    output.setRecordsWritten(files.stream().mapToLong(file -> file.file().rowCount()).sum());
  }

  private static ObjectNode describe(ObjectNode json, DataFileWriter.Finished file, List<byte[]> pieces) {
    pieces.add(file.footer());
    file.floats().write(json.putArray("floats"));
    return json.put("path", file.location()).put("size", file.sizeBytes()).put("footer", file.footer().length);
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

  /** The reports of the finished tasks, for Python. */
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
