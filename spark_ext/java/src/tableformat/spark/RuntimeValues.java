package tableformat.spark;

import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Or;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** Values that a join found at run time. There can be millions of them; ranges of the values are sufficient to rule out files. */
final class RuntimeValues {
  /** The maximum number of values of an IN that are passed to the planner individually. */
  private static final int LISTED_MAX = 1000;

  private static final int RANGES = 200;

  private RuntimeValues() {}

  /** The predicates, condensed to ranges. They may match more rows, because Spark joins the rows with the values again. */
  static Predicate[] condensed(Predicate[] predicates) {
    return Arrays.stream(predicates).map(RuntimeValues::condensed).toArray(Predicate[]::new);
  }

  /**
   * SP-94: the same for a statement that changes rows. Spark finds the values of the rows to be changed by a subquery, and an IN list
   * cannot match null.
   */
  static Predicate[] condensedWithNulls(Predicate[] predicates) {
    return Arrays.stream(predicates).filter(predicate -> predicate.references().length == 1)
        .map(predicate -> new Or(condensed(predicate), new Predicate("IS_NULL", predicate.references())))
        .toArray(Predicate[]::new);
  }

  private static Predicate condensed(Predicate predicate) {
    Expression[] arguments = predicate.children();
    if (!predicate.name().equals("IN") || arguments.length <= LISTED_MAX + 1) {
      return predicate;
    }
    List<Literal<?>> values = Arrays.stream(arguments).skip(1).filter(RuntimeValues::hasOrder)
        .<Literal<?>>map(value -> (Literal<?>) value).sorted((a, b) -> order(a.value(), b.value())).toList();
    if (values.size() < arguments.length - 1) {
      return predicate;
    }
    int[] cuts = isWhole(values.get(0)) ? widestGaps(values) : evenCuts(values.size());
    Predicate[] ranges = new Predicate[RANGES];
    for (int i = 0; i < RANGES; i++) {
      ranges[i] = range(arguments[0], values.get(cuts[i]), values.get(cuts[i + 1] - 1));
    }
    return anyOf(Arrays.asList(ranges));
  }

  private static boolean hasOrder(Expression value) {
    return value instanceof Literal<?> literal && literal.value() instanceof Comparable<?>;
  }

  /** All values of one type have the same class. */
  @SuppressWarnings({"unchecked", "rawtypes"})
  private static int order(Object a, Object b) {
    return ((Comparable) a).compareTo(b);
  }

  private static boolean isWhole(Literal<?> literal) {
    return literal.value() instanceof Integer || literal.value() instanceof Long;
  }

  /** The positions at which ranges begin, and the end. The ranges exclude the widest gaps between values. */
  private static int[] widestGaps(List<Literal<?>> sorted) {
    long[] values = sorted.stream().mapToLong(literal -> ((Number) literal.value()).longValue()).toArray();
    IntStream inner = IntStream.range(1, values.length).boxed()
        .sorted((a, b) -> Long.compareUnsigned(values[b] - values[b - 1], values[a] - values[a - 1]))
        .limit(RANGES - 1).mapToInt(Integer::intValue).sorted();
    return IntStream.concat(IntStream.concat(IntStream.of(0), inner), IntStream.of(values.length)).toArray();
  }

  private static int[] evenCuts(int size) {
    return IntStream.rangeClosed(0, RANGES).map(i -> (int) ((long) size * i / RANGES)).toArray();
  }

  private static Predicate range(Expression column, Literal<?> lowest, Literal<?> highest) {
    return new And(
        new Predicate(">=", new Expression[] {column, lowest}), new Predicate("<=", new Expression[] {column, highest}));
  }

  /** The OR of the predicates, as a balanced tree. */
  private static Predicate anyOf(List<Predicate> predicates) {
    int half = predicates.size() / 2;
    return half == 0 ? predicates.get(0)
        : new Or(anyOf(predicates.subList(0, half)), anyOf(predicates.subList(half, predicates.size())));
  }
}
