package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** Rows into new data files: executors write them, Python commits them. */
final class LakeWrite implements RequiresDistributionAndOrdering, BatchWrite {
  private final LogicalWriteInfo info;
  private final String mode;
  private final Predicate[] predicates;

  /** Of a stream with the columns that its rows brought. */
  private LakeTable table;

  /** Planned when Spark says whether it is of a batch or of a stream. */
  private WriteJob job;

  /** What was told Spark of: before 4.1 a value of a metric that it was not told of ends the statement. */
  private CustomMetric[] metrics;

  LakeWrite(LakeTable table, LogicalWriteInfo info, String mode, Predicate[] predicates) {
    this.table = table;
    this.info = info;
    this.mode = mode;
    this.predicates = predicates;
  }

  private WriteJob job() {
    if (job == null) {
      job = WriteJob.plan(table, info.options(), mode, info.schema());
    }
    return job;
  }

  @Override public String description() {
    return table.name() + " [" + mode + "]";
  }

  /** Part of EXPLAIN. */
  @Override public String toString() {
    return "TableFormatWrite(table=" + table.name() + ", mode=" + mode + shown("replacePrefix", ReplacedPrefix.OPTION)
        + shown("replaceEqual", ReplacedPrefix.EQUAL) + shown("operation", Replacement.OPERATION) + ")";
  }

  private String shown(String name, String option) {
    String value = info.options().get(option);
    return value == null ? "" : ", " + name + "=" + value;
  }

  @Override public Distribution requiredDistribution() {
    return job().distribution();
  }

  /** Spark may cut a large partition in pieces and put small ones together. */
  @Override public boolean distributionStrictlyRequired() {
    return false;
  }

  @Override public long advisoryPartitionSizeInBytes() {
    return job().advisoryPartitionSizeInBytes();
  }

  @Override public SortOrder[] requiredOrdering() {
    return job().ordering();
  }

  @Override public BatchWrite toBatch() {
    return this;
  }

  @Override public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo physical) {
    return job().writers();
  }

  @Override public void commit(WriterCommitMessage[] messages) {
    ObjectNode arguments = arguments().set("pin", table.pin());
    job().commit("commit_write", arguments.set("reads", table.reads()), messages);
  }

  @Override public CustomMetric[] supportedCustomMetrics() {
    if (metrics == null) {
      metrics = CommitMetrics.forSpark();
    }
    return metrics.clone();
  }

  /** Spark asks since 4.0. */
  public CustomTaskMetric[] reportDriverMetrics() {
    return supportedCustomMetrics().length == 0 ? new CustomTaskMetric[0] : CommitMetrics.of(job().summary());
  }

  @Override public void abort(WriterCommitMessage[] messages) {
    job().abort(messages);
  }

  private ObjectNode arguments() {
    return job().arguments().put("mode", mode).set("predicates", ExpressionJson.of(predicates));
  }

  @Override public StreamingWrite toStreaming() {
    if (table.hasChecks()) {
      throw Errors.unsupported(
          "Spark does not check CHECK constraints for streams, but " + table.name() + " has CHECK constraints. Write "
              + "each micro-batch with foreachBatch and writeTo(...).append(), which checks them.");
    }
    StreamedRows rows = StreamedRows.of(table, info);
    table = rows.table();
    job = WriteJob.planStream(table, rows.options(), mode, info.schema());
    rows.checkArrangedBy(job.ordering());
    return new Epochs(rows);
  }

  /** The same, once for each epoch of a streaming query; an epoch that was committed before is not committed again. */
  private final class Epochs implements StreamingWrite {
    private final StreamedRows rows;

    Epochs(StreamedRows rows) {
      this.rows = rows;
    }

    @Override public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo physical) {
      return rows.writers(job.writers());
    }

    @Override public void commit(long epoch, WriterCommitMessage[] messages) {
      job.commitEpoch(arguments(), info.queryId(), epoch, messages);
    }

    @Override public void abort(long epoch, WriterCommitMessage[] messages) {
      job.abort(messages);
    }
  }
}
