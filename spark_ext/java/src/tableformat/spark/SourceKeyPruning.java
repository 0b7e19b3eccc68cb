package tableformat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.runtime.AbstractPartialFunction;

/**
 * Rules out files of a MERGE's target by the keys of its source before any of them is read (ST-4).
 *
 * <p>For a MERGE, or an UPDATE or DELETE with a subquery, Spark first finds the matching rows. It joins the key columns of the target with
 * the source, and then reads the files that contain a match. Spark prunes the first of the two reads only if the source has a filter. This
 * rule also prunes it for every source that is broadcast, because its keys are known by then.
 */
final class SourceKeyPruning extends Rule<LogicalPlan> {
  /** Adds the rules about sources, once, to the session in which a catalog is looked up. */
  static void addToActiveSession() {
    var session = Sessions.found();
    if (session.isEmpty()) {
      return;
    }
    List<Rule<LogicalPlan>> rules =
        new ArrayList<>(Scala.list(session.get().experimental().extraOptimizations()));
    // If a jar is added to a running session, several class loaders load it. Each has its own scan class and needs its own rule.
    if (rules.stream().noneMatch(rule -> rule instanceof SourceKeyPruning)) {
      rules.add(new MergeInserts());
      rules.add(new MergeTargetReduction());
      rules.add(new SourceKeyPruning());
      session.get().experimental().extraOptimizations_$eq(Scala.seq(rules));
    }
  }

  @Override public LogicalPlan apply(LogicalPlan plan) {
    return (LogicalPlan) plan.transformDown(new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
      @Override public boolean isDefinedAt(LogicalPlan node) {
        return node instanceof Join join && join.joinType() == LeftSemi$.MODULE$ && scanOf(join.left()) != null;
      }

      @Override public LogicalPlan apply(LogicalPlan node) {
        return pruned((Join) node);
      }
    });
  }

  /** The scan of one of our tables whose rows are not changed above it and that is not yet pruned by other rows; else null. */
  private static DataSourceV2ScanRelation scanOf(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Project || below instanceof Filter) {
      if (below instanceof Filter filter && filter.condition().exists(each -> each instanceof DynamicPruningSubquery)) {
        return null;
      }
      below = below.children().head();
    }
    return scanBelow(below);
  }

  /** The scan of one of our tables below filters; else null. */
  static DataSourceV2ScanRelation scanBelow(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Filter filter) {
      below = filter.child();
    }
    return below instanceof DataSourceV2ScanRelation scan && scan.scan() instanceof LakeScan ? scan : null;
  }

  /** Whether the join key is a column whose values can rule out files of the scan. */
  static boolean isPrunedBy(Expression key, DataSourceV2ScanRelation scan) {
    return key instanceof Attribute column && scan.outputSet().contains(column)
        && ((LakeScan) scan.scan()).isPrunedBy(column.name());
  }

  private static LogicalPlan pruned(Join join) {
    var keys = ExtractEquiJoinKeys$.MODULE$.unapply(join);
    if (keys.isEmpty()) {
      return join;
    }
    DataSourceV2ScanRelation scan = scanOf(join.left());
    var ours = keys.get()._2();
    LogicalPlan rows = join.left();
    for (int i = 0; i < ours.size(); i++) {
      if (isPrunedBy(ours.apply(i), scan)) {
        rows = onScan(rows, Pruning.by(ours.apply(i), join, i));
      }
    }
    return rows == join.left() ? join : (LogicalPlan) join.withNewChildren(Scala.seq(rows, join.right()));
  }

  private static LogicalPlan onScan(LogicalPlan plan, Expression condition) {
    if (plan instanceof DataSourceV2ScanRelation) {
      return new Filter(condition, plan);
    }
    return (LogicalPlan) plan.withNewChildren(Scala.seq(onScan(plan.children().head(), condition)));
  }
}
