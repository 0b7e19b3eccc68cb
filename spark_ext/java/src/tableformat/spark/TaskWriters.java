package tableformat.spark;

import java.io.IOException;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/** Serialized and sent to the executors, where it creates writers. */
final class TaskWriters implements DataWriterFactory, StreamingDataWriterFactory {
  private static final byte[] NOTHING = {};

  private final WritePlan plan;
  private final Broadcast<SerializableConfiguration> configuration;

  TaskWriters(WritePlan plan, Broadcast<SerializableConfiguration> configuration) {
    this.plan = plan;
    this.configuration = configuration;
  }

  @Override public DataWriter<InternalRow> createWriter(int partition, long task) {
    return rows(files(partition, task, "0"));
  }

  @Override public DataWriter<InternalRow> createWriter(int partition, long task, long epoch) {
    return rows(files(partition, task, Long.toString(epoch)));
  }

  private RefusedRows refused(DataFiles files) {
    return new RefusedRows(plan, configuration.value().value(), files.stem());
  }

  private DataWriter<InternalRow> rows(DataFiles files) {
    if (plan.deleted != null) {
      return new DeletedKeys(plan.deleted, plan.deletedKey, refused(files));
    }
    return plan.prefix.length == 0 ? new Rows(files, refused(files), plan) : new ReplacingRows(files, refused(files), plan);
  }

  private DataFiles files(int partition, long task, String epoch) {
    Configuration hadoop = configuration.value().value();
    return new DataFiles(plan, hadoop, partition, String.format("%05d-%d-%s", partition, task, epoch));
  }

  /** The same, but rows can also be deleted. */
  static final class OfDelta implements DeltaWriterFactory {
    private final TaskWriters rows;
    private final int lineageColumns;

    /** Each row is written with `lineageColumns` columns of row lineage after its own, the row id first. */
    OfDelta(TaskWriters rows, int lineageColumns) {
      this.rows = rows;
      this.lineageColumns = lineageColumns;
    }

    @Override public DeltaWriter<InternalRow> createWriter(int partition, long task) {
      DataFiles files = rows.files(partition, task, "0");
      return new Delta(files, rows.refused(files), rows.plan.schema, lineageColumns);
    }
  }

  /** Writes new rows. If they replace others, also collects the values by which they do (SQ-34). */
  private static final class Rows implements DataWriter<InternalRow> {
    private final DataFiles files;
    private final RefusedRows refused;
    private final DistinctValues replaced;

    Rows(DataFiles files, RefusedRows refused, WritePlan plan) {
      this.files = files;
      this.refused = refused;
      this.replaced = plan.equal.length == 0 ? null : new DistinctValues(plan.schema, plan.equal);
    }

    @Override public void write(InternalRow row) throws IOException {
      if (refused.refuses(row) || refused.failsWrite()) {
        return;
      }
      files.write(row);
      if (replaced != null) {
        replaced.add(row);
      }
    }

    @Override public WriterCommitMessage commit() throws IOException {
      return TaskReport.of(files.finish(), Map.of(), replaced == null ? NOTHING : replaced.serialized(), refused);
    }

    @Override public void abort() throws IOException {
      files.abort();
      refused.abort();
    }

    @Override public void close() {
      refused.close();
      if (replaced != null) {
        replaced.close();
      }
    }
  }

  /** Collects rows to delete, by file and position, and writes new rows. */
  private static final class Delta implements DeltaWriter<InternalRow> {
    private final DataFiles files;
    private final RefusedRows refused;
    private final DeletedPositions deleted = new DeletedPositions();
    private final StructType schema;
    private final int columnCount;
    private final GenericInternalRow lineage;
    private final JoinedRow withLineage = new JoinedRow();

    Delta(DataFiles files, RefusedRows refused, StructType schema, int lineageColumns) {
      this.files = files;
      this.refused = refused;
      this.schema = schema;
      this.columnCount = schema.size() - lineageColumns;
      this.lineage = lineageColumns == 0 ? null : new GenericInternalRow(lineageColumns);
    }

    @Override public void delete(InternalRow metadata, InternalRow id) {
      deleted.add(id.getUTF8String(0), id.getLong(1));
    }

    @Override public void insert(InternalRow row) throws IOException {
      add(null, row);
    }

    /** Called by Spark 4, which distinguishes new rows from new versions of rows. */
    public void reinsert(InternalRow metadata, InternalRow row) throws IOException {
      add(metadata, row);
    }

    @Override public void update(InternalRow metadata, InternalRow id, InternalRow row) throws IOException {
      delete(metadata, id);
      add(metadata, row);
    }

    /** Null lineage columns are inherited: the id of a new row, and the sequence number of the last change, which is this commit. */
    private void add(InternalRow metadata, InternalRow given) throws IOException {
      InternalRow row = given.numFields() > columnCount ? ofTable(given) : given;
      if (refused.refuses(row) || refused.failsWrite()) {
        return;
      }
      if (lineage == null) {
        files.write(row);
      } else {
        lineage.update(0, metadata == null || metadata.isNullAt(0) ? null : metadata.getLong(0));
        files.write(withLineage.apply(row, lineage));
      }
    }

    /** SP-95: the row without metadata columns. If the statement names some, Spark appends them to the columns of the table. */
    private InternalRow ofTable(InternalRow row) {
      Object[] values = new Object[columnCount];
      for (int i = 0; i < columnCount; i++) {
        values[i] = Constants.value(row, i, schema.apply(i).dataType());
      }
      return new GenericInternalRow(values);
    }

    @Override public WriterCommitMessage commit() throws IOException {
      return TaskReport.of(files.finish(), deleted.serialized(), NOTHING, refused);
    }

    @Override public void abort() throws IOException {
      files.abort();
      refused.abort();
    }

    @Override public void close() {
      refused.close();
    }
  }
}
