package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * SP-102: converts DELETE ... WHERE (a, b) IN (SELECT ...), by the first columns of the key, to a delete of these keys.
 *
 * <p>Spark has no filter for a subquery and rewrites the statement to a job. Since 4.3 it does so before rules of extensions run, which
 * then see the job.
 */
final class DeleteByKeys {
  private DeleteByKeys() {}

  static void heed(SparkSessionExtensions extensions) {
    extensions.injectResolutionRule(session -> new AsDeletedKeys());
  }

  private static final class AsDeletedKeys extends Rule<LogicalPlan> {
    @Override public LogicalPlan apply(LogicalPlan plan) {
      if (plan instanceof DeleteFromTable delete) {
        return rewritten(plan, delete.table(), delete.condition());
      }
      return plan instanceof WriteDelta delta && delta.operation().command() == RowLevelOperation.Command.DELETE
          ? rewritten(plan, (LogicalPlan) delta.originalTable(), delta.condition()) : plan;
    }
  }

  private static LogicalPlan rewritten(LogicalPlan plan, LogicalPlan target, Expression condition) {
    DataSourceV2Relation relation = relation(target);
    if (relation == null || !(relation.table() instanceof LakeTable table) || !condition.resolved()
        || !(condition instanceof InSubquery in) || in.query().isCorrelated()) {
      return plan;
    }
    List<String> columns = columns(relation, in);
    return columns != null && isBlind(table, columns)
        ? new DeleteKeysCommand(table, columns, in.query().plan(), condition.sql()) : plan;
  }

  private static DataSourceV2Relation relation(LogicalPlan plan) {
    if (plan instanceof SubqueryAlias alias) {
      return relation(alias.child());
    }
    return plan instanceof DataSourceV2Relation relation ? relation : null;
  }

  /** The columns of the table that are compared, each with a column of the subquery that has the same type; else null. */
  private static List<String> columns(DataSourceV2Relation relation, InSubquery in) {
    List<Expression> values = Scala.list(in.values());
    List<Attribute> found = Scala.list(in.query().plan().output());
    List<String> columns = new ArrayList<>();
    for (int i = 0; i < values.size() && values.size() == found.size(); i++) {
      String column = column(relation, values.get(i));
      if (column == null || !values.get(i).dataType().equals(found.get(i).dataType())) {
        return null;
      }
      columns.add(column);
    }
    return columns.isEmpty() ? null : columns;
  }

  private static String column(DataSourceV2Relation relation, Expression value) {
    if (value instanceof Attribute attribute) {
      for (Attribute each : Scala.list(relation.output())) {
        if (each.exprId().equals(attribute.exprId())) {
          return each.name();
        }
      }
    }
    return null;
  }

  private static boolean isBlind(LakeTable table, List<String> columns) {
    ObjectNode arguments = SessionSettings.withDeleteMode(table.catalog(), table.arguments());
    arguments.set("columns", Json.array(columns.toArray(String[]::new)));
    return table.catalog().call("can_delete_keys", arguments).result().asBoolean();
  }
}
