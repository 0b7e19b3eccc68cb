package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TransactionalWrite;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/**
 * Keeps the version of a data frame that reads a table AS OF a version when a statement writes its rows (ST-9).
 *
 * <p>Within the statement, Spark looks up the tables of data frames again by name only, which would lose the version. It leaves relations
 * without a name unchanged. Hint rules run before that lookup.
 */
final class PastStates {
  private PastStates() {}

  static void keep(SparkSessionExtensions extensions) {
    extensions.injectHintResolutionRule(session -> new Keep());
  }

  private static final class Keep extends Rule<LogicalPlan> {
    @Override public LogicalPlan apply(LogicalPlan plan) {
      if (!(plan instanceof TransactionalWrite)) {
        return plan;
      }
      return AnalysisHelper$.MODULE$.allowInvokingTransformsInAnalyzer(
          () -> (LogicalPlan) plan.transformWithSubqueries(new WithoutName()));
    }
  }

  private static final class WithoutName extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override public boolean isDefinedAt(LogicalPlan node) {
      return node instanceof DataSourceV2Relation relation && relation.timeTravelSpec().isDefined()
          && relation.identifier().isDefined() && relation.catalog().get() instanceof LakeCatalog;
    }

    @Override public LogicalPlan apply(LogicalPlan node) {
      DataSourceV2Relation relation = (DataSourceV2Relation) node;
      return relation.copy(
          relation.table(), relation.output(), relation.catalog(), Option.empty(), relation.options(), relation.timeTravelSpec());
    }
  }
}
