package tableformat.spark;

import java.io.Serializable;
import java.math.BigInteger;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * A transform from whose values those of a coarser transform can be derived. Spark uses this to join tables that are partitioned
 * differently (SP-40): buckets by a common divisor of their numbers, and hours by days.
 */
interface Reducing<T> extends ScalarFunction<T>, ReducibleFunction<Integer, Integer> {
  int HOURS_OF_DAY = 24;

  @Override default Reducer<Integer, Integer> reducer(int count, ReducibleFunction<?, ?> other, int otherCount) {
    int common = BigInteger.valueOf(count).gcd(BigInteger.valueOf(otherCount)).intValue();
    boolean areBuckets = this instanceof Transforms.Bucket mine && other instanceof Transforms.Bucket its
        && mine.inputTypes()[1].equals(its.inputTypes()[1]);
    return areBuckets && common > 1 && common != count ? new Modulo(common) : null;
  }

  @Override default Reducer<Integer, Integer> reducer(ReducibleFunction<?, ?> other) {
    boolean isHours = this instanceof Transforms.DatePart mine && mine.name().equals("hours");
    boolean toDays = other instanceof Transforms.DatePart its && its.name().equals("days");
    return isHours && toDays ? new Days() : null;
  }

  record Modulo(int count) implements Reducer<Integer, Integer>, Serializable {
    @Override public Integer reduce(Integer bucket) {
      return bucket == null ? null : bucket % count;
    }

    /** Called by Spark since 4.2. */
    public DataType resultType() {
      return DataTypes.IntegerType;
    }
  }

  record Days() implements Reducer<Integer, Integer>, Serializable {
    @Override public Integer reduce(Integer hour) {
      return hour == null ? null : Math.floorDiv(hour, HOURS_OF_DAY);
    }

    /** The type of `days`. */
    public DataType resultType() {
      return DataTypes.DateType;
    }
  }
}
