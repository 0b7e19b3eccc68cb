package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/**
 * SP-98: the rows of a data frame that replace prefixes may have markers, and order columns that the table lacks.
 *
 * <p>Spark compares the columns of a write with those of the table in the batch of rules after the hint rules.
 */
final class ReplacementColumns {
  private ReplacementColumns() {}

  static void accept(SparkSessionExtensions extensions) {
    extensions.injectHintResolutionRule(session -> new Accept((SparkSession) session));
  }

  private static final class Accept extends Rule<LogicalPlan> {
    private final SparkSession session;

    Accept(SparkSession session) {
      this.session = session;
    }

    @Override public LogicalPlan apply(LogicalPlan plan) {
      if (!(plan instanceof AppendData write) || !MergeSchemaOption.isOurs(write.table())) {
        return plan;
      }
      CaseInsensitiveStringMap options = new CaseInsensitiveStringMap(Scala.entries(write.writeOptions()));
      LakeTable table = MergeSchemaOption.table(write.table());
      Replacement replacement = table == null || table.takesReplacement() ? null : Replacement.of(options, table);
      if (replacement == null) {
        return plan;
      }
      StructType rows =
          session.sessionState().executePlan(write.query(), CommandExecutionMode.SKIP()).analyzed().schema();
      LakeTable target = replacement.target(table, rows, write.isByName());
      LogicalPlan relation =
          DataSourceV2Relation.create(target, Option.apply(table.catalog()), Option.apply(table.identifier()));
      return with(write, write.table(), with(relation, CaseInsensitiveStringMap.empty(), options));
    }

    /** A copy of the plan in which every element that equals `part` is replaced by `other`. */
    private static LogicalPlan with(LogicalPlan plan, Object part, Object other) {
      Object[] parts = new Object[plan.productArity()];
      for (int i = 0; i < parts.length; i++) {
        parts[i] = plan.productElement(i).equals(part) ? other : plan.productElement(i);
      }
      return plan.makeCopy(parts);
    }
  }
}
