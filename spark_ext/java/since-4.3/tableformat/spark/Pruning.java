package tableformat.spark;

import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import scala.Option;

/** Spark's condition that the value of a column is among the values that another plan returns. */
final class Pruning {
  private Pruning() {}

  /** Prunes by the right side of a join, if it is broadcast. `column` is compared with the join key at position `place`. */
  static Expression by(Expression column, Join join, int place) {
    var keys = ExtractEquiJoinKeys$.MODULE$.unapply(join).get()._3();
    return new DynamicPruningSubquery(
        column, join.right(), keys, Scala.seq((Object) place), true, NamedExpression$.MODULE$.newExprId(), Option.empty(), Option.empty());
  }
}
