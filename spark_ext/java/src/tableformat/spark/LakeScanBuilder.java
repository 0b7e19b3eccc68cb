package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Takes from Spark the columns and filters of a read, or an aggregate that can be answered from metadata. */
final class LakeScanBuilder
    implements ScanBuilder, SupportsPushDownV2Filters, SupportsPushDownRequiredColumns, SupportsPushDownAggregates {
  private final LakeTable table;
  private final CaseInsensitiveStringMap options;
  private final boolean changesRows;
  private StructType required;
  private Predicate[] predicates = {};
  private int[] decided = {};
  private Scan aggregated;

  LakeScanBuilder(LakeTable table, CaseInsensitiveStringMap options) {
    this(table, options, false);
  }

  /** `changesRows` is true for a DELETE, UPDATE or MERGE, which reads the rows that it changes. */
  LakeScanBuilder(LakeTable table, CaseInsensitiveStringMap options, boolean changesRows) {
    this.table = table;
    this.options = options;
    this.changesRows = changesRows;
    this.required = table.rowType();
  }

  /**
   * All predicates are passed to the planner and to the Parquet reader. Spark also applies them to the rows, except for predicates that the
   * planner decides for every file (SP-41, SP-46).
   */
  @Override public Predicate[] pushPredicates(Predicate[] predicates) {
    this.predicates = predicates;
    decided = decided();
    return IntStream.range(0, predicates.length).filter(i -> Arrays.stream(decided).noneMatch(each -> each == i))
        .mapToObj(i -> predicates[i]).toArray(Predicate[]::new);
  }

  private int[] decided() {
    if (predicates.length == 0 || ReadOptions.areOfAppends(options)) {
      return new int[0];
    }
    JsonNode answer = table.catalog().call("decided_predicates", arguments()).result();
    return IntStream.range(0, answer.size()).map(i -> answer.get(i).asInt()).toArray();
  }

  private ObjectNode arguments() {
    return table.arguments().set("predicates", ExpressionJson.of(predicates));
  }

  @Override public Predicate[] pushedPredicates() {
    return predicates;
  }

  @Override public void pruneColumns(StructType required) {
    this.required = required;
  }

  @Override public boolean supportCompletePushDown(Aggregation aggregation) {
    return aggregate(aggregation);
  }

  @Override public boolean pushAggregation(Aggregation aggregation) {
    return aggregate(aggregation);
  }

  /** Pushes COUNT, MIN and MAX down if the metadata gives the exact answer; Python decides. */
  private boolean aggregate(Aggregation aggregation) {
    if (aggregated != null) {
      return true;
    }
    ArrayNode functions = functions(aggregation);
    if (functions == null || decided.length < predicates.length) {
      return false;
    }
    ReadOptions.check(table.catalog(), table.pin(), options);
    ObjectNode arguments = ReadOptions.added(arguments().set("functions", functions), options);
    Sidecar.Answer answer = table.catalog().call("aggregate", arguments);
    JsonNode schema = answer.result().get("schema");
    if (schema.isNull()) {
      return false;
    }
    table.noteRead(ExpressionJson.of(predicates));
    StructType struct = Json.struct(schema);
    aggregated = new ArrowRows.Rows(struct, ArrowRows.read(answer.parts()[0], struct));
    return true;
  }

  /** The functions as JSON; null if metadata cannot answer one of them. */
  private static ArrayNode functions(Aggregation aggregation) {
    if (aggregation.groupByExpressions().length > 0) {
      return null;
    }
    ArrayNode functions = Json.array();
    for (AggregateFunc function : aggregation.aggregateExpressions()) {
      ObjectNode json = functions.addObject();
      if (function instanceof CountStar) {
        json.put("function", "count-star");
      } else if (function instanceof Count count && !count.isDistinct()) {
        json.put("function", "count");
      } else if (function instanceof Min) {
        json.put("function", "min");
      } else if (function instanceof Max) {
        json.put("function", "max");
      } else {
        return null;
      }
      for (Expression child : function.children()) {
        if (!(child instanceof NamedReference reference)) {
          return null;
        }
        json.set("column", Json.array(reference.fieldNames()));
      }
    }
    return functions;
  }

  /** SP-63: raises an error if the names of two of the read columns differ only in case and the session does not distinguish them. */
  @Override public Scan build() {
    Names.refuseAlike(table.name(), required.fieldNames());
    return aggregated != null ? aggregated : new LakeScan(table, required, predicates, decided, options, changesRows);
  }
}
