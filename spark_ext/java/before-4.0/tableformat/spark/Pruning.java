package tableformat.spark;

import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import scala.Option;

/** Spark's condition that a column has one of the values that another plan gives. */
final class Pruning {
  private Pruning() {}

  /** By the right side of a join, where that is broadcast; the column is that of the join's key at `place`. */
  static Expression by(Expression column, Join join, int place) {
    var keys = ExtractEquiJoinKeys$.MODULE$.unapply(join).get()._3();
    return new DynamicPruningSubquery(
        column, join.right(), keys, place, true, NamedExpression$.MODULE$.newExprId(), Option.empty());
  }
}
