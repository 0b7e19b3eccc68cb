package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FractionalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One write into a table: its plan, how Spark has to arrange the rows, and its end. */
final class WriteJob {
  private static final long ADVISORY_BYTES_MAX = 256L << 20;

  private static final String REFUSED_ROWS_TABLE = "refused-rows-table";

  private final LakeTable table;
  private final JsonNode answer;
  private final WritePlan plan;

  /** The columns by which the newest message of a prefix is found (SP-98). */
  private final StructField[] order;

  private boolean mayBeCommitted = false;
  private JsonNode summary;

  private WriteJob(LakeTable table, JsonNode answer, Replacement replacement, StructType rows) {
    this.table = table;
    this.answer = answer;
    this.plan = new WritePlan(
        answer, answer.get("target").get("row_lineage").asBoolean() ? table.storedColumns() : table.schemaWithIds(), replacement,
        table.rowType(), rows);
    this.order = plan.order;
  }

  /** `rows` are the columns that the rows come with. */
  static WriteJob plan(LakeTable table, CaseInsensitiveStringMap options, String mode, StructType rows) {
    return plan(table, options, table.arguments().put("mode", mode).put("row_lineage", false), rows);
  }

  /** Of a stream, whose epochs have names of their own. */
  static WriteJob planStream(LakeTable table, CaseInsensitiveStringMap options, String mode, StructType rows) {
    ObjectNode arguments = table.arguments().put("mode", mode).put("row_lineage", false).put("is_stream", true);
    return plan(table, options, arguments, rows);
  }

  /** Of a DELETE, an UPDATE or a MERGE. With `rowLineage` the rows have the lineage columns behind the table's own. */
  static WriteJob planDelta(
      LakeTable table, CaseInsensitiveStringMap options, RowLevelOperation.Command command, boolean rowLineage) {
    ObjectNode arguments = table.arguments().put("mode", "delta").put("row_lineage", rowLineage);
    return plan(table, options, arguments.put("command", command.name().toLowerCase(Locale.ROOT)), null);
  }

  private static WriteJob plan(
      LakeTable table, CaseInsensitiveStringMap options, ObjectNode arguments, StructType rows) {
    SessionSettings.added(arguments).set("options", Json.object(options.asCaseSensitiveMap()));
    String refused = options.get(REFUSED_ROWS_TABLE);
    if (refused != null) {
      arguments.set("refused_rows_table", Json.identifier(TableNames.parse(table.catalog().name(), refused)));
    }
    JsonNode answer = table.catalog().call("plan_write", WriteAuditPublish.added(arguments)).result();
    Replacement replacement = rows == null ? null : Replacement.of(options, table);
    return new WriteJob(
        table, answer, replacement == null ? null : replacement.orderedBy(Json.strings(answer.get("order_by"))), rows);
  }

  TaskWriters writers() {
    return new TaskWriters(plan, ParquetOutput.configuration(plan));
  }

  /** Rows of a partition come together. */
  Distribution distribution() {
    return distribution(new Expression[0], transforms(), ordering());
  }

  /** Those that are deleted by their file, and new ones of a partition (SP-52). */
  Distribution distributionOfDelta(boolean onlyDeletes) {
    Expression file = Expressions.column(MetadataColumns.FILE);
    return distribution(
        new Expression[] {file}, onlyDeletes ? new Expression[0] : transforms(),
        onlyDeletes ? new SortOrder[] {ascending(Expressions.column(MetadataColumns.POSITION))} : ordering());
  }

  /** `first` are columns that rows are spread by before all others. */
  private Distribution distribution(Expression[] first, Expression[] clustered, SortOrder[] order) {
    return switch (answer.get("distribution").asText()) {
      case "hash" -> Distributions.clustered(
          Stream.concat(Arrays.stream(first), Arrays.stream(clustered)).toArray(Expression[]::new));
      case "range" -> order.length == 0 ? Distributions.unspecified() : Distributions.ordered(
          Stream.concat(Arrays.stream(first).map(WriteJob::ascending), Arrays.stream(order)).toArray(SortOrder[]::new));
      default -> Distributions.unspecified();
    };
  }

  /** Bytes that Spark should give to a task. */
  long advisoryPartitionSizeInBytes() {
    if (answer.get("distribution").asText().equals("none")) {
      return 0;
    }
    JsonNode advised = answer.get("advisory_bytes");
    return advised.isNull() ? Math.min(plan.targetFileSizeBytes, ADVISORY_BYTES_MAX) : advised.asLong();
  }

  /** By partition and place, so that one file is open at a time, and by key, as the files promise; else by the table's sort order. */
  SortOrder[] ordering() {
    List<SortOrder> sort = new ArrayList<>();
    for (Expression transform : transforms()) {
      sort.add(ascending(transform));
    }
    if (answer.get("sorts_by_place").asBoolean()) {
      sort.add(ascending(place()));
    }
    int prefixColumns = answer.get("prefix").size();
    int at = 0;
    for (JsonNode column : answer.get("key")) {
      if (at++ == prefixColumns) {
        newestFirst(sort);
      }
      sort.add(ascending(Expressions.column(Names.quoted(Json.strings(column)))));
    }
    if (at == prefixColumns) {
      newestFirst(sort);
    }
    for (JsonNode field : answer.get("order")) {
      sort.add(Expressions.sort(
          expression(field),
          field.get("descends").asBoolean() ? SortDirection.DESCENDING : SortDirection.ASCENDING,
          field.get("nulls_first").asBoolean() ? NullOrdering.NULLS_FIRST : NullOrdering.NULLS_LAST));
    }
    return sort.toArray(new SortOrder[0]);
  }

  /** SP-98: Spark sorts NaN behind all numbers, and the library before them. */
  private void newestFirst(List<SortOrder> sort) {
    for (StructField field : order) {
      Expression column = Expressions.column(Names.quoted(field.name()));
      if (field.dataType() instanceof FractionalType && !(field.dataType() instanceof DecimalType)) {
        sort.add(descending(Expressions.apply(IsNumberFunction.NAME, column)));
      }
      sort.add(descending(column));
    }
  }

  private static SortOrder descending(Expression expression) {
    return Expressions.sort(expression, SortDirection.DESCENDING, NullOrdering.NULLS_LAST);
  }

  private static SortOrder ascending(Expression expression) {
    return Expressions.sort(expression, SortDirection.ASCENDING, NullOrdering.NULLS_FIRST);
  }

  private Expression place() {
    List<Expression> arguments = new ArrayList<>();
    arguments.add(Expressions.literal(answer.get("ranges").toString()));
    for (JsonNode column : answer.get("ranges").get("columns")) {
      arguments.add(Expressions.column(Names.quoted(column.get("name").asText())));
    }
    return Expressions.apply(RangePlaceFunction.NAME, arguments.toArray(new Expression[0]));
  }

  private Expression[] transforms() {
    List<Expression> transforms = new ArrayList<>();
    for (JsonNode field : answer.get("partition")) {
      if (field.has("column")) {
        transforms.add(expression(field));
      }
    }
    return transforms.toArray(new Expression[0]);
  }

  private static Expression expression(JsonNode field) {
    return field.get("transform").asText().equals("identity")
        ? Expressions.column(Names.quoted(Json.strings(field.get("column"))))
        : TransformJson.parse(Json.array().add(field))[0];
  }

  /** Arguments of the commit. */
  ObjectNode arguments() {
    return Json.object().set("target", answer.get("target"));
  }

  void commit(String method, ObjectNode arguments, WriterCommitMessage[] messages) {
    ending(() -> summary =
        CommitCall.call(table.catalog(), method, arguments, TaskReport.parts(messages)).result().path("summary"));
  }

  /** Of the snapshot; null before the commit. */
  JsonNode summary() {
    return summary;
  }

  void commitEpoch(ObjectNode arguments, String queryId, long epoch, WriterCommitMessage[] messages) {
    ending(() -> CommitCall.callEpoch(
        table.catalog(), "commit_write", arguments, queryId, epoch, TaskReport.parts(messages)));
  }

  /** Spark aborts after a commit that failed; the files of one that may have happened are kept. */
  private void ending(Runnable commit) {
    mayBeCommitted = true;
    try {
      commit.run();
    } catch (Exception error) {
      mayBeCommitted = !CommitCall.isRefusal(error);
      throw error;
    }
  }

  void abort(WriterCommitMessage[] messages) {
    if (!mayBeCommitted) {
      table.catalog().call("abort_write", arguments(), TaskReport.parts(messages));
    }
  }
}
