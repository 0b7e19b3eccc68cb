package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A read of one snapshot. Python plans it in two steps. It estimates sizes while Spark optimizes the query. When all filters are known, it
 * lists the files with their deleted positions.
 */
final class LakeScan implements Scan, Batch, SupportsReportStatistics, SupportsReportPartitioning, SupportsRuntimeV2Filtering {
  private final LakeTable table;
  private final StructType required;
  private final Predicate[] predicates;

  /** The indexes of the predicates that are decided for every file and not applied to rows. */
  private final int[] decided;

  private final CaseInsensitiveStringMap options;

  /** Whether a DELETE, UPDATE or MERGE changes the rows that are read. */
  private final boolean changesRows;

  private Predicate[] runtimePredicates = {};
  private JsonNode estimate;

  /** The metrics that were declared to Spark. Before 4.1, a value of an undeclared metric fails the statement. */
  private CustomMetric[] metrics;
  private ScanFiles files;
  private long planningNanos = 0;

  /** Null if the partitioning is not reported. */
  private final Grouping grouping;

  /** The grouping that was reported. Values that are found at run time reduce the files, but must not change the keys. */
  private Grouping reported;

  private boolean isReported = false;

  /** Whether this is the scan of a stream. Streams have different options, some of which have the same names as those of batch reads. */
  private boolean isOfStream = false;

  LakeScan(
      LakeTable table, StructType required, Predicate[] predicates, int[] decided, CaseInsensitiveStringMap options,
      boolean changesRows) {
    this.table = table;
    this.required = required;
    this.predicates = predicates;
    this.decided = decided;
    this.options = options;
    this.changesRows = changesRows;
    Grouping known = Grouping.of(table);
    this.grouping = known == null ? null : known.ofColumns(required);
  }

  @Override public StructType readSchema() {
    return required;
  }

  @Override public String description() {
    String groupedBy = grouping == null
        ? "" : Arrays.stream(grouping.transforms()).map(Object::toString).collect(Collectors.joining(", "));
    return "TableFormatScan(table=" + table.name() + ", snapshotId=" + table.version() + ", filters="
        + PredicateText.of(predicates) + ", runtimeFilters=" + PredicateText.of(runtimePredicates) + ", groupedBy="
        + groupedBy + (table.retired().length == 0 ? "" : ", notReadRetired=" + String.join("; ", table.retired())) + ")";
  }

  /** Displayed by Spark in plans. */
  @Override public String toString() {
    return description();
  }

  @Override public Batch toBatch() {
    ReadOptions.check(table.catalog(), table.pin(), options);
    return this;
  }

  @Override public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    if (decided.length > 0) {
      throw new IllegalStateException("A stream of " + table.name() + " does not support file pruning by " + Arrays.toString(predicates));
    }
    isOfStream = true;
    ObjectNode arguments = Json.object().putNull("changes");
    arguments.set("options", Json.object(options.asCaseSensitiveMap()));
    return new LakeStream(table, required, arguments);
  }

  @Override public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  @Override public Statistics estimateStatistics() {
    if (estimate == null) {
      ObjectNode arguments = arguments();
      if (Sessions.active().sessionState().conf().cboEnabled()) {
        arguments.set("statistics_of", Json.array(required.fieldNames()));
      }
      estimate = planned("estimate", arguments).result();
    }
    long fullRowBytes = Math.max(1, table.rowType().defaultSize());
    double share = Math.min(1.0, (double) Math.max(1, required.defaultSize()) / fullRowBytes);
    long bytes = Math.max(1, (long) (estimate.get("data_bytes").asLong() * share));
    long rows = estimate.get("record_count").asLong();
    Map<NamedReference, ColumnStatistics> columns = ColumnEstimates.of(estimate.get("columns"), required);
    return new Statistics() {
      @Override public OptionalLong sizeInBytes() {
        return OptionalLong.of(bytes);
      }

      @Override public OptionalLong numRows() {
        return OptionalLong.of(rows);
      }

      @Override public Map<NamedReference, ColumnStatistics> columnStats() {
        return columns;
      }
    };
  }

  @Override public NamedReference[] filterAttributes() {
    List<String> read = List.of(required.fieldNames());
    return Arrays.stream(table.pruningColumns()).filter(read::contains)
        .map(name -> Expressions.column(Names.quoted(name)))
        .toArray(NamedReference[]::new);
  }

  /** Whether values of the column that are found at run time can rule out files. */
  boolean isPrunedBy(String column) {
    String stored = Names.asStored(column, required.fieldNames());
    return List.of(required.fieldNames()).contains(stored) && List.of(table.pruningColumns()).contains(stored);
  }

  @Override public void filter(Predicate[] predicates) {
    Predicate[] stored = Names.asStored(predicates, required.fieldNames());
    runtimePredicates = changesRows ? RuntimeValues.condensedWithNulls(stored) : RuntimeValues.condensed(stored);
    files = null;
  }

  /** The partitioning that joins can use (SP-40). */
  @Override public Partitioning outputPartitioning() {
    Grouping common = isOfStream ? null : common();
    return common == null
        ? new UnknownPartitioning(0)
        : new KeyGroupedPartitioning(common.transforms(), files().byPartition(common.fields()).size());
  }

  @Override public InputPartition[] planInputPartitions() {
    Grouping common = common();
    long splitSize = ReadOptions.splitSize(options, files().taskSizes());
    long openCost = ReadOptions.fileOpenCost(options, files().taskSizes());
    return common == null
        ? Splits.of(files().tasks(), splitSize, openCost)
        : Splits.ofGroups(files().byPartition(common.fields()), splitSize, openCost);
  }

  /** The fields of `grouping` that every file is partitioned by; null if there are none. */
  private Grouping common() {
    if (!isReported) {
      reported = grouping == null ? null : grouping.ofSpecs(files().specIds(), table);
      isReported = true;
    }
    return reported;
  }

  @Override public CustomMetric[] supportedCustomMetrics() {
    if (metrics == null) {
      metrics = ScanMetrics.forSpark();
    }
    return metrics.clone();
  }

  @Override public CustomTaskMetric[] reportDriverMetrics() {
    return supportedCustomMetrics().length == 0
        ? new CustomTaskMetric[0] : ScanMetrics.of(files().counts(), planningNanos);
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    // Decided predicates are omitted. Spark reads only columns of predicates that it applies to rows, so the Parquet reader lacks the
    // others.
    Predicate[] asked = IntStream.range(0, predicates.length)
        .filter(i -> Arrays.stream(decided).noneMatch(each -> each == i)).mapToObj(i -> predicates[i])
        .toArray(Predicate[]::new);
    return files().readerFactory(table.schemaWithIds(), table.lineage(), required, asked);
  }

  private ScanFiles files() {
    if (files == null) {
      ArrayNode columns = Json.array(required.fieldNames());
      if (grouping != null) {
        Stream.of(MetadataColumns.SPEC_ID, MetadataColumns.PARTITION)
            .filter(name -> !List.of(required.fieldNames()).contains(name)).forEach(columns::add);
      }
      ObjectNode arguments = arguments().put("changes_rows", changesRows).set("columns", columns);
      table.noteRead(allPredicates());
      files = ScanFiles.of(planned("scan_files", arguments));
    }
    return files;
  }

  private Sidecar.Answer planned(String method, ObjectNode arguments) {
    long started = System.nanoTime();
    Sidecar.Answer answer = table.catalog().call(method, arguments);
    planningNanos += System.nanoTime() - started;
    return answer;
  }

  private ObjectNode arguments() {
    ObjectNode arguments = table.arguments().set("predicates", allPredicates());
    arguments.put("runtime_count", runtimePredicates.length);
    ArrayNode indexes = arguments.putArray("decided");
    Arrays.stream(decided).forEach(indexes::add);
    return isOfStream ? arguments : ReadOptions.added(arguments, options);
  }

  private ArrayNode allPredicates() {
    return ExpressionJson.of(predicates).addAll(ExpressionJson.of(runtimePredicates));
  }

  LakeTable table() {
    return table;
  }

  /** Records that the statement reads rows of this scan that an earlier statement cached. */
  void noteRead(Statement statement) {
    statement.noteRead(table, ExpressionJson.of(predicates));
  }

  /** Equal scans return the same rows. Spark then runs one of them and reuses its result. */
  @Override public boolean equals(Object other) {
    return other instanceof LakeScan scan && table.pin().equals(scan.table.pin()) && required.equals(scan.required)
        && Arrays.equals(predicates, scan.predicates) && Arrays.equals(runtimePredicates, scan.runtimePredicates)
        && options.equals(scan.options);
  }

  @Override public int hashCode() {
    return Objects.hash(table.pin(), required, Arrays.hashCode(predicates));
  }
}
