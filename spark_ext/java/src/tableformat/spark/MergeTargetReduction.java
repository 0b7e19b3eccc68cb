package tableformat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.RaiseError;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.Some;
import scala.runtime.AbstractPartialFunction;

/**
 * Removes target rows without a matching source row from the join of a MERGE (SP-81).
 *
 * <p>Spark joins all rows of the target with the source by sorting both: a source whose rows may be inserted cannot be broadcast. This rule
 * broadcasts the keys of the source, so that target rows without a matching key are dropped right after the scan:
 *
 * <pre>
 *   MergeRows                        MergeRows
 *   +- Join RightOuter               +- Join RightOuter
 *      :- target                        :- Join LeftSemi, by broadcast
 *      +- source                        :  :- target
 *                                       :  +- keys of the source
 *                                       +- Filter: the key is one of those
 *                                          +- source, each row with whether it is
 * </pre>
 *
 * <p>Spark then evaluates the source twice. The filter fails the statement if the source returns other keys the second time. Otherwise the
 * matching target rows would be missing from the join, and duplicates of them would be inserted. Both joins with the keys share one
 * broadcast, because Spark reuses equal exchanges. If this reuse is switched off, the rule does nothing.
 */
final class MergeTargetReduction extends Rule<LogicalPlan> {
  private static final String OTHER_KEYS =
      "The source of a MERGE returned other keys when it was read again. Nothing was changed. Cache the "
          + "source or write it to a table, or set spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled to false.";

  @Override public LogicalPlan apply(LogicalPlan plan) {
    if (!conf().runtimeRowLevelOperationGroupFilterEnabled() || !conf().exchangeReuseEnabled()) {
      return plan;
    }
    return (LogicalPlan) plan.transformDown(new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
      @Override public boolean isDefinedAt(LogicalPlan node) {
        return node instanceof MergeRows;
      }

      @Override public LogicalPlan apply(LogicalPlan node) {
        return withReducedJoin(node);
      }
    });
  }

  /** The plan with a reduced target in the join below its projections. */
  private LogicalPlan withReducedJoin(LogicalPlan plan) {
    LogicalPlan below = plan.children().head();
    LogicalPlan reduced = below instanceof Join join ? reduced(join) : below instanceof Project ? withReducedJoin(below) : below;
    return reduced == below ? plan : (LogicalPlan) plan.withNewChildren(Scala.seq(reduced));
  }

  private LogicalPlan reduced(Join join) {
    if (!mayBeReduced(join.joinType())) {
      return join;
    }
    LogicalPlan source = join.right();
    LogicalPlan target = filteredScan(join.left());
    DataSourceV2ScanRelation scan = SourceKeyPruning.scanBelow(target);
    var keys = ExtractEquiJoinKeys$.MODULE$.unapply(join);
    if (scan == null || keys.isEmpty() || !isStable(source)) {
      return join;
    }
    List<Expression> ofTarget = Scala.list(keys.get()._2());
    List<Expression> ofSource = Scala.list(keys.get()._3());
    Project keysOfSource = keysOf(source, ofSource);
    if (!isBroadcast(keysOfSource) || join.joinType() == Inner$.MODULE$ && isBroadcast(source)
        || ofTarget.stream().anyMatch(key -> !key.references().subsetOf(target.outputSet()))) {
      return join;
    }
    boolean isPruned = ofTarget.stream().anyMatch(key -> SourceKeyPruning.isPrunedBy(key, scan));
    LogicalPlan matched =
        joined(isPruned ? withoutFoundKeys(target) : target, keysOfSource, LeftSemi$.MODULE$, ofTarget);
    return (LogicalPlan) join.withNewChildren(
        Scala.seq(inPlaceOf(target, join.left(), matched), checked(source, ofSource)));
  }

  /** Whether the join drops target rows that do not match. It does not if the MERGE has a clause for rows that the source lacks. */
  private static boolean mayBeReduced(JoinType type) {
    return type == RightOuter$.MODULE$ || type == Inner$.MODULE$;
  }

  /** Whether the source returns the same rows when it is evaluated again, as far as its plan shows. */
  private static boolean isStable(LogicalPlan source) {
    return source.deterministic() && !source.exists(
        each -> each instanceof GlobalLimit || each instanceof LocalLimit || each instanceof Sample);
  }

  private boolean isBroadcast(LogicalPlan plan) {
    return plan.stats().sizeInBytes().$less$eq(scala.math.BigInt.apply(conf().autoBroadcastJoinThreshold()));
  }

  /** The plan below all projections. Filters can be above and below the projection that numbers the rows. */
  private static LogicalPlan filteredScan(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Filter filter) {
      below = filter.child();
    }
    return below instanceof Project project ? filteredScan(project.child()) : plan;
  }

  private static LogicalPlan inPlaceOf(LogicalPlan old, LogicalPlan plan, LogicalPlan replacement) {
    return plan == old ? replacement
        : (LogicalPlan) plan.withNewChildren(Scala.seq(inPlaceOf(old, plan.children().head(), replacement)));
  }

  /**
   * Removes the dynamic pruning condition, for which Spark would first read the whole target. The source's keys rule out files by
   * themselves.
   */
  private static LogicalPlan withoutFoundKeys(LogicalPlan target) {
    if (!(target instanceof Filter filter)) {
      return target;
    }
    LogicalPlan below = withoutFoundKeys(filter.child());
    return conjuncts(filter.condition()).stream().filter(each -> !(each instanceof DynamicPruning))
        .reduce(And::new).<LogicalPlan>map(rest -> new Filter(rest, below)).orElse(below);
  }

  private static List<Expression> conjuncts(Expression condition) {
    if (!(condition instanceof And and)) {
      return List.of(condition);
    }
    List<Expression> parts = new ArrayList<>(conjuncts(and.left()));
    parts.addAll(conjuncts(and.right()));
    return parts;
  }

  /** Only the keys, under new names. */
  private static Project keysOf(LogicalPlan source, List<Expression> keys) {
    List<NamedExpression> named = new ArrayList<>();
    for (Expression key : keys) {
      named.add(new Alias(key, "key", NamedExpression$.MODULE$.newExprId(), Scala.seq(), Option.empty(), Scala.seq()));
    }
    return new Project(Scala.seq(named), source);
  }

  /** A join of `rows` with the broadcast keys, on equality of all key columns. */
  private static Join joined(LogicalPlan rows, Project keysOfSource, JoinType type, List<Expression> keysOfRows) {
    List<Attribute> others = Scala.list(keysOfSource.output());
    Expression same = null;
    for (int i = 0; i < others.size(); i++) {
      Expression each = new EqualTo(keysOfRows.get(i), others.get(i));
      same = same == null ? each : new And(same, each);
    }
    JoinHint broadcast = new JoinHint(Option.empty(), new Some<>(new HintInfo(new Some<>(BROADCAST$.MODULE$))));
    return new Join(rows, ColumnPruning$.MODULE$.apply(keysOfSource), type, new Some<>(same), broadcast);
  }

  /** The source, with a filter that fails the statement if a row has a key that is not among the broadcast keys. */
  private static LogicalPlan checked(LogicalPlan source, List<Expression> keys) {
    Attribute known = new AttributeReference("known", DataTypes.BooleanType, false, Metadata.empty(),
        NamedExpression$.MODULE$.newExprId(), Scala.seq());
    Expression passes = known;
    for (Expression key : keys) {
      passes = new Or(passes, new IsNull(key));
    }
    passes = new Or(passes, new IsNotNull(new RaiseError(Literal.create(OTHER_KEYS, DataTypes.StringType))));
    LogicalPlan rows = joined(source, keysOf(source, keys), new ExistenceJoin(known), keys);
    List<NamedExpression> columns = new ArrayList<>(Scala.list(source.output()));
    return new Project(Scala.seq(columns), new Filter(passes, rows));
  }
}
