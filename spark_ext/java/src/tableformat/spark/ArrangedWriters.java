package tableformat.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;

/** Writers for rows that first have to be arranged as the columns of the table (SP-58). Serialized and sent to the executors. */
final class ArrangedWriters implements StreamingDataWriterFactory {
  private final TaskWriters writers;
  private final ArrayList<Expression> columns;
  private final ArrayList<Attribute> given;

  ArrangedWriters(TaskWriters writers, List<Expression> columns, List<Attribute> given) {
    this.writers = writers;
    this.columns = new ArrayList<>(columns);
    this.given = new ArrayList<>(given);
  }

  @Override public DataWriter<InternalRow> createWriter(int partition, long task, long epoch) {
    UnsafeProjection arranged = UnsafeProjection$.MODULE$.create(Scala.seq(columns), Scala.seq(given));
    return new Arranged(arranged, writers.createWriter(partition, task, epoch));
  }

  private record Arranged(UnsafeProjection arranged, DataWriter<InternalRow> rows) implements DataWriter<InternalRow> {
    @Override public void write(InternalRow row) throws IOException {
      rows.write(arranged.apply(row));
    }

    @Override public CustomTaskMetric[] currentMetricsValues() {
      return rows.currentMetricsValues();
    }

    @Override public WriterCommitMessage commit() throws IOException {
      return rows.commit();
    }

    @Override public void abort() throws IOException {
      rows.abort();
    }

    @Override public void close() throws IOException {
      rows.close();
    }
  }
}
