package tableformat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Not;
import org.apache.spark.sql.connector.expressions.filter.Or;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.internal.connector.PredicateUtils;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * SP-2: converts predicates to filters by which the Parquet reader rules out row groups. A predicate that cannot be converted is omitted as
 * a whole. If only one side of an OR can be converted, Spark's own conversion would keep that side and rule out rows that match.
 *
 * <p>Dates and times use `java.time` (SP-49). Java's older classes do not have the days from 5 to 14 October 1582, and Spark would convert
 * these days to different ones.
 */
final class RowGroupFilters {
  private RowGroupFilters() {}

  static Filter[] of(Predicate[] predicates) {
    if (predicates.length == 0) {
      return new Filter[0];
    }
    SQLConf conf = SessionSettings.with(Map.of(SQLConf.DATETIME_JAVA8API_ENABLED().key(), "true"), SQLConf.get());
    return SQLConf$.MODULE$.withExistingConf(conf, () -> converted(predicates));
  }

  private static Filter[] converted(Predicate[] predicates) {
    List<Filter> filters = new ArrayList<>();
    for (Predicate predicate : predicates) {
      if (isConvertible(predicate)) {
        Filter filter = FloatFilters.withEitherZero(PredicateUtils.toV1(predicate).get());
        if (filter != null) {
          filters.add(filter);
        }
      }
    }
    return filters.toArray(new Filter[0]);
  }

  /** SP-88: the filters that cannot match a NaN. The statistics of a row group do not show whether it contains NaNs. */
  static Filter[] besideNan(Filter[] filters) {
    return Arrays.stream(filters).filter(filter -> !FloatFilters.mayMatchNan(filter)).toArray(Filter[]::new);
  }

  /**
   * SP-96: whether the expression is a string that is not valid UTF-8. The reader's filters use Java strings, which cannot represent it.
   */
  private static boolean isNoText(Expression expression) {
    return expression instanceof Literal<?> literal && literal.value() instanceof UTF8String text && !ValueJson.isText(text);
  }

  private static boolean isConvertible(Predicate predicate) {
    if (predicate instanceof And and) {
      return isConvertible(and.left()) && isConvertible(and.right());
    }
    if (predicate instanceof Or or) {
      return isConvertible(or.left()) && isConvertible(or.right());
    }
    if (predicate instanceof Not not) {
      return isConvertible(not.child());
    }
    return PredicateUtils.toV1(predicate).isDefined() && Arrays.stream(predicate.children()).noneMatch(RowGroupFilters::isNoText);
  }
}
