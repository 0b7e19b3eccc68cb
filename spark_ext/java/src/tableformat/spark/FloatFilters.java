package tableformat.spark;

import java.util.Arrays;
import java.util.stream.Stream;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;

/**
 * SP-88: comparisons of floats. SQL defines them differently than the Parquet reader that rules out row groups.
 *
 * <pre>
 *            -0.0 and 0.0            NaN
 *   SQL      are equal               is above all others, and equal to itself
 *   Parquet  -0.0 is the lower one   is in no statistics
 * </pre>
 */
final class FloatFilters {
  private FloatFilters() {}

  /** Rewrites comparisons with a zero so that they rule out neither -0.0 nor 0.0. Null if the filter cannot be rewritten in this way. */
  static Filter withEitherZero(Filter filter) {
    if (filter instanceof And and) {
      Filter left = withEitherZero(and.left());
      Filter right = withEitherZero(and.right());
      return left == null || right == null ? null : new And(left, right);
    }
    if (filter instanceof Or or) {
      Filter left = withEitherZero(or.left());
      Filter right = withEitherZero(or.right());
      return left == null || right == null ? null : new Or(left, right);
    }
    if (filter instanceof Not not) {
      Filter child = withEitherZero(not.child());
      return child == null ? null : new Not(child);
    }
    if (filter instanceof In in) {
      Object[] zeros = Arrays.stream(in.values()).filter(FloatFilters::isZero).toArray();
      return zeros.length == 0 ? in : new Or(in, eitherZero(in.attribute(), zeros[0]));
    }
    if (filter instanceof EqualTo each && isZero(each.value())) {
      return eitherZero(each.attribute(), each.value());
    }
    if (filter instanceof EqualNullSafe each && isZero(each.value())) {
      return null;
    }
    if (filter instanceof LessThan each && isZero(each.value())) {
      return new LessThan(each.attribute(), zero(each.value(), -0.0));
    }
    if (filter instanceof GreaterThanOrEqual each && isZero(each.value())) {
      return new GreaterThanOrEqual(each.attribute(), zero(each.value(), -0.0));
    }
    if (filter instanceof LessThanOrEqual each && isZero(each.value())) {
      return new LessThanOrEqual(each.attribute(), zero(each.value(), 0.0));
    }
    if (filter instanceof GreaterThan each && isZero(each.value())) {
      return new GreaterThan(each.attribute(), zero(each.value(), 0.0));
    }
    return filter;
  }

  /** Whether the filter may match a NaN, which the Parquet reader's statistics do not include. */
  static boolean mayMatchNan(Filter filter) {
    if (filter instanceof And and) {
      return mayMatchNan(and.left()) || mayMatchNan(and.right());
    }
    if (filter instanceof Or or) {
      return mayMatchNan(or.left()) || mayMatchNan(or.right());
    }
    if (filter instanceof Not not) {
      return comparesFloats(not.child());
    }
    boolean isBelow = filter instanceof GreaterThan || filter instanceof GreaterThanOrEqual;
    return values(filter).anyMatch(isBelow ? FloatFilters::isFloat : FloatFilters::isNan);
  }

  private static boolean comparesFloats(Filter filter) {
    if (filter instanceof And and) {
      return comparesFloats(and.left()) || comparesFloats(and.right());
    }
    if (filter instanceof Or or) {
      return comparesFloats(or.left()) || comparesFloats(or.right());
    }
    return filter instanceof Not not ? comparesFloats(not.child()) : values(filter).anyMatch(FloatFilters::isFloat);
  }

  /** The values that a column is compared with. */
  private static Stream<Object> values(Filter filter) {
    if (filter instanceof In in) {
      return Arrays.stream(in.values());
    }
    return filter instanceof EqualTo each ? Stream.of(each.value())
        : filter instanceof EqualNullSafe each ? Stream.of(each.value())
        : filter instanceof LessThan each ? Stream.of(each.value())
        : filter instanceof LessThanOrEqual each ? Stream.of(each.value())
        : filter instanceof GreaterThan each ? Stream.of(each.value())
        : filter instanceof GreaterThanOrEqual each ? Stream.of(each.value()) : Stream.empty();
  }

  /** A single IN is not used, because Spark removes values that are equal in Scala, such as the two zeros. */
  private static Filter eitherZero(String column, Object like) {
    return new Or(new EqualTo(column, zero(like, -0.0)), new EqualTo(column, zero(like, 0.0)));
  }

  private static Object zero(Object like, double zero) {
    return like instanceof Float ? (Object) (float) zero : (Object) zero;
  }

  private static boolean isFloat(Object value) {
    return value instanceof Float || value instanceof Double;
  }

  private static boolean isZero(Object value) {
    return isFloat(value) && ((Number) value).doubleValue() == 0.0;
  }

  private static boolean isNan(Object value) {
    return isFloat(value) && Double.isNaN(((Number) value).doubleValue());
  }
}
