package tableformat.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;

/** Sets in the operation of a MERGE whether it has a clause for rows that do not exist (CP-38). Spark does not pass this to the writer. */
final class MergeInserts extends Rule<LogicalPlan> {
  @Override public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof WriteDelta write && write.operation() instanceof RowLevelDelta delta) {
      var merges = Scala.list(write.query().collect(new Merges()));
      if (!merges.isEmpty()) {
        delta.inserts = merges.stream().anyMatch(merge -> !merge.notMatchedInstructions().isEmpty());
      }
    }
    return plan;
  }

  private static final class Merges extends scala.runtime.AbstractPartialFunction<LogicalPlan, MergeRows> {
    @Override public boolean isDefinedAt(LogicalPlan node) {
      return node instanceof MergeRows;
    }

    @Override public MergeRows apply(LogicalPlan node) {
      return (MergeRows) node;
    }
  }
}
