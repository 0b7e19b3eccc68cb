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
 * Lets the keys of a MERGE's source rule out files of its target before any of them is read (ST-4).
 *
 * <p>Spark first looks for the rows that a MERGE, or an UPDATE or DELETE with a subquery, matches: it joins the target's
 * key columns with the source, and then reads the files that hold a match. It prunes the first of the two reads only
 * where the source has a filter; this rule adds that for every source that is broadcast, whose keys are known then.
 */
final class SourceKeyPruning extends Rule<LogicalPlan> {
  /** Adds the rules about sources to the session that a catalog is looked up in, once. */
  static void addToActiveSession() {
    var session = Sessions.found();
    if (session.isEmpty()) {
      return;
    }
    List<Rule<LogicalPlan>> rules =
        new ArrayList<>(Scala.list(session.get().experimental().extraOptimizations()));
    // Each class loader that a jar added to a running session is loaded by has scans, and a rule for them, of its own.
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

  /** The scan of a table of ours that the rows come from unchanged, not pruned by other rows yet; else null. */
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

  /** The scan of a table of ours below filters; else null. */
  static DataSourceV2ScanRelation scanBelow(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Filter filter) {
      below = filter.child();
    }
    return below instanceof DataSourceV2ScanRelation scan && scan.scan() instanceof LakeScan ? scan : null;
  }

  /** Whether a join's key is a column whose values rule out files of the scan. */
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
