package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * DELETE, UPDATE and MERGE. Rows are deleted by file and position; their new versions are inserted as new rows.
 *
 * <p>The writer gets an update as a delete, whose columns are null, and an insert. Sorted by the table's key, the deletes come first,
 * followed by the inserts in the order of data files.
 */
final class RowLevelDelta implements SupportsDelta {
  private final LakeTable table;
  private final RowLevelOperationInfo info;

  /** Whether a MERGE inserts source rows that do not match a row of the table (CP-38). True until the plan has been inspected. */
  boolean inserts = true;

  RowLevelDelta(LakeTable table, RowLevelOperationInfo info) {
    this.table = table;
    this.info = info;
  }

  @Override public String description() {
    return table.name() + " [" + info.command() + "]";
  }

  @Override public RowLevelOperation.Command command() {
    return info.command();
  }

  /** The options belong to the write, which checks them. */
  @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new LakeScanBuilder(table, CaseInsensitiveStringMap.empty(), true);
  }

  @Override public NamedReference[] rowId() {
    return new NamedReference[] {
      Expressions.column(MetadataColumns.FILE), Expressions.column(MetadataColumns.POSITION)
    };
  }

  /** The row id, which an updated row keeps. */
  @Override public NamedReference[] requiredMetadataAttributes() {
    return keepsRowIds() ? new NamedReference[] {Expressions.column(MetadataColumns.ROW_ID)} : new NamedReference[0];
  }

  private boolean keepsRowIds() {
    return List.of(table.lineage().fieldNames()).contains(MetadataColumns.ROW_ID)
        && command() != RowLevelOperation.Command.DELETE;
  }

  @Override public boolean representUpdateAsDeleteAndInsert() {
    return !keepsRowIds() || RowIds.ARE_GIVEN_TO_REINSERTED_ROWS;
  }

  @Override public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo write) {
    return new DeltaWriteBuilder() {
      @Override public DeltaWrite build() {
        return new Delta(WriteJob.planDelta(table, write.options(), command(), keepsRowIds()));
      }
    };
  }

  private final class Delta implements DeltaWrite, MergeCounts, RequiresDistributionAndOrdering {
    private final WriteJob job;

    /** The metrics that were declared to Spark. Before 4.1, a value of an undeclared metric fails the statement. */
    private CustomMetric[] metrics;

    Delta(WriteJob job) {
      this.job = job;
    }

    private boolean onlyDeletes() {
      return command() == RowLevelOperation.Command.DELETE;
    }

    @Override public String description() {
      return RowLevelDelta.this.description();
    }

    @Override public Distribution requiredDistribution() {
      return job.distributionOfDelta(onlyDeletes());
    }

    @Override public boolean distributionStrictlyRequired() {
      return false;
    }

    @Override public long advisoryPartitionSizeInBytes() {
      return job.advisoryPartitionSizeInBytes();
    }

    @Override public SortOrder[] requiredOrdering() {
      return onlyDeletes() ? new SortOrder[0] : job.ordering();
    }

    @Override public DeltaBatchWrite toBatch() {
      return this;
    }

    @Override public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return new TaskWriters.OfDelta(job.writers(), keepsRowIds() ? table.lineage().size() : 0);
    }

    @Override public void commit(WriterCommitMessage[] messages, ObjectNode counts) {
      ObjectNode arguments = job.arguments().put("command", command().name()).set("merge_counts", counts);
      arguments.put("inserts", inserts).set("pin", table.pin());
      arguments.set("reads", table.reads());
      job.commit("commit_delta", arguments, messages);
    }

    @Override public CustomMetric[] supportedCustomMetrics() {
      if (metrics == null) {
        metrics = CommitMetrics.forSpark();
      }
      return metrics.clone();
    }

    /** Called by Spark since 4.0. */
    public CustomTaskMetric[] reportDriverMetrics() {
      return supportedCustomMetrics().length == 0 ? new CustomTaskMetric[0] : CommitMetrics.of(job.summary());
    }

    @Override public void abort(WriterCommitMessage[] messages) {
      job.abort(messages);
    }
  }
}
