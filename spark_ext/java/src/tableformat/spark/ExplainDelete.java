package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTableWithFilters;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;

/** `EXPLAIN DELETE`: displays what the statement would write and why, followed by Spark's plan (SQ-7). */
final class ExplainDelete {
  private ExplainDelete() {}

  /** The single row of the result. */
  static ArrayNode run(ExplainCommand explained) {
    var execution = Sessions.active().sessionState()
        .executePlan(explained.logicalPlan(), CommandExecutionMode.SKIP());
    LogicalPlan optimized = execution.optimizedPlan();
    String plan = (optimized instanceof DeleteKeysCommand delete ? delete.keys().queryExecution() : execution)
        .explainString(explained.mode());
    JsonNode parts = parts(optimized);
    StringBuilder text = new StringBuilder();
    if (parts != null) {
      text.append("== Delete ==\n");
      for (JsonNode part : parts) {
        text.append(part.get(0).asText()).append(": ").append(part.get(1).asText()).append('\n');
      }
      text.append('\n');
    }
    return Json.array().add(Json.array(text.append(plan).toString()));
  }

  /** Null if Spark's plan has no delete, for example because the condition is always false. */
  private static JsonNode parts(LogicalPlan plan) {
    if (plan instanceof DeleteKeysCommand delete) {
      ObjectNode arguments = delete.table().arguments();
      arguments.set("columns", Json.array(delete.columns().toArray(String[]::new)));
      return delete.table().catalog().call("explain_delete_keys", arguments).result();
    }
    if (plan instanceof DeleteFromTableWithFilters delete && table(delete.table()) instanceof LakeTable lake) {
      List<Predicate> predicates = Scala.list(delete.condition());
      return parts(lake, ExpressionJson.of(predicates.toArray(new Predicate[0])), "");
    }
    if (plan instanceof DeleteFromTable delete && table(delete.table()) instanceof LakeTable lake) {
      return parts(lake, Json.array(), ""); // Spark passes no filter if every row is deleted.
    }
    if (plan instanceof WriteDelta delta && table((LogicalPlan) delta.originalTable()) instanceof LakeTable lake) {
      var predicate = DataSourceV2Strategy$.MODULE$.translateFilterV2(delta.condition());
      return parts(
          lake, predicate.isEmpty() ? null : ExpressionJson.of(new Predicate[] {predicate.get()}), delta.condition().sql());
    }
    return null;
  }

  private static JsonNode parts(LakeTable table, ArrayNode predicates, String condition) {
    ObjectNode arguments = SessionSettings.withDeleteMode(table.catalog(), table.arguments());
    arguments.set("predicates", predicates);
    return table.catalog().call("explain_delete", arguments.put("condition", condition)).result();
  }

  private static Table table(LogicalPlan relation) {
    if (relation instanceof DataSourceV2ScanRelation scanned) {
      return table(scanned.relation());
    }
    return relation instanceof DataSourceV2Relation found ? found.table() : null;
  }
}
