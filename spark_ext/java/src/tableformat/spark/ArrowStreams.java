package tableformat.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.spark.sql.execution.arrow.ArrowWriter;

/** Serializes Arrow columns as a stream for Python. */
final class ArrowStreams {
  private ArrowStreams() {}

  /** All rows that were written so far, in one batch. */
  static byte[] of(ArrowWriter rows) throws IOException {
    rows.finish();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ArrowStreamWriter stream = new ArrowStreamWriter(rows.root(), null, bytes)) {
      stream.start();
      stream.writeBatch();
      stream.end();
    }
    return bytes.toByteArray();
  }
}
