package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** SP-62: Spark 4.0 takes MERGE WITH SCHEMA EVOLUTION, changes no table for it, and leaves new columns out in silence. */
final class MergeEvolution {
  private MergeEvolution() {}

  static void check(SparkSessionExtensions extensions) {
    extensions.injectPostHocResolutionRule(session -> new Check());
  }

  private static final class Check extends Rule<LogicalPlan> {
    @Override public LogicalPlan apply(LogicalPlan plan) {
      plan.foreach(node -> {
        if (node instanceof MergeIntoTable merge && merge.withSchemaEvolution() && isOurs(merge.targetTable())) {
          throw Errors.unsupported(
              "MERGE WITH SCHEMA EVOLUTION changes no table in Spark 4.0 (4.1 and newer do). Nothing was written. Add the "
                  + "columns by ALTER TABLE, and leave WITH SCHEMA EVOLUTION out.");
        }
        return null;
      });
      return plan;
    }

    private static boolean isOurs(LogicalPlan target) {
      return target.exists(
          node -> node instanceof DataSourceV2Relation relation && relation.table() instanceof LakeTable);
    }
  }
}
