package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A read of the rows that snapshots deleted and inserted. */
final class ChangesScan implements Scan, Batch {
  private final LakeTable table;
  private final StructType required;
  private final Predicate[] predicates;
  private final ObjectNode arguments;
  private final CaseInsensitiveStringMap options;
  private ScanFiles files;

  private ChangesScan(
      LakeTable table, StructType required, Predicate[] predicates, ObjectNode arguments,
      CaseInsensitiveStringMap options) {
    this.table = table;
    this.required = required;
    this.predicates = predicates;
    this.arguments = arguments;
    this.options = options;
  }

  @Override public StructType readSchema() {
    return required;
  }

  @Override public String description() {
    String range = (ofIceberg() ? arguments.get("options") : arguments.get("changes").get("bounds")).toString();
    return table.name() + " [changes: " + range + ", filters: " + Arrays.toString(predicates) + "]";
  }

  @Override public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  @Override public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    return new LakeStream(table, required, arguments);
  }

  @Override public Batch toBatch() {
    return this;
  }

  @Override public InputPartition[] planInputPartitions() {
    return Splits.of(
        files().tasks(), ReadOptions.splitSize(options, files().taskSizes()),
        ReadOptions.fileOpenCost(options, files().taskSizes()));
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return files().readerFactory(table.schemaWithIds(), new StructType(), required, predicates);
  }

  private ScanFiles files() {
    if (files == null) {
      ObjectNode call = table.arguments().set("options", arguments.get("options"));
      if (!ofIceberg()) {
        call.set("bounds", arguments.get("changes").get("bounds"));
      }
      call.set("columns", Json.array(required.fieldNames()));
      call.set("predicates", ExpressionJson.of(predicates));
      files = ScanFiles.of(table.catalog().call(ofIceberg() ? "changelog_files" : "change_files", call));
    }
    return files;
  }

  /** Whether the range is that of `db.t.changes`, which is stated by options, and not the range of Spark's CHANGES. */
  private boolean ofIceberg() {
    return arguments.get("changes").isNull();
  }

  /** Takes the columns and filters of a read of changes from Spark. `changes` is null for `db.t.changes`. */
  static final class Builder implements ScanBuilder, SupportsPushDownV2Filters, SupportsPushDownRequiredColumns {
    private final LakeTable table;
    private final ObjectNode arguments;
    private final CaseInsensitiveStringMap options;
    private StructType required;
    private Predicate[] predicates = {};

    Builder(LakeTable table, StructType schema, ObjectNode changes, CaseInsensitiveStringMap options) {
      this.table = table;
      this.required = schema;
      this.arguments = Json.object().set("changes", changes);
      arguments.set("options", Json.object(options.asCaseSensitiveMap()));
      this.options = options;
    }

    /** The predicates rule out files and row groups. Spark also applies all of them to the rows. */
    @Override public Predicate[] pushPredicates(Predicate[] predicates) {
      this.predicates = predicates;
      return predicates;
    }

    @Override public Predicate[] pushedPredicates() {
      return predicates;
    }

    @Override public void pruneColumns(StructType required) {
      this.required = required;
    }

    @Override public Scan build() {
      return new ChangesScan(table, required, predicates, arguments, options);
    }
  }
}
