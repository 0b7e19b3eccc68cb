package tableformat.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * RP-7: the place of a row among range partitions. Spark sorts the rows of a task by it, so that only one file is open at a time. The
 * arguments are the plan of the ranges, as a string, and the range columns.
 */
final class RangePlaceFunction implements UnboundFunction {
  static final String NAME = "range_place";

  @Override public String description() {
    return NAME + "(ranges, columns...): the position of a row among range partitions; for internal use by writes";
  }

  @Override public String name() {
    return NAME;
  }

  @Override public BoundFunction bind(StructType input) {
    return new Bound(Arrays.stream(input.fields()).map(StructField::dataType).toArray(DataType[]::new));
  }

  /** Public, because Spark calls it from generated code. */
  public static final class Bound implements ScalarFunction<InternalRow> {
    private static final StructType PLACE =
        new StructType().add("below", DataTypes.IntegerType, false).add("step", DataTypes.LongType, false);

    private final DataType[] types;
    private transient RangePlaces places;

    Bound(DataType[] types) {
      this.types = types;
    }

    @Override public String name() {
      return NAME;
    }

    @Override public String canonicalName() {
      return "tableformat." + NAME;
    }

    @Override public DataType[] inputTypes() {
      return types;
    }

    @Override public DataType resultType() {
      return PLACE;
    }

    /** The first argument is the same for every row, so it is parsed only once. */
    @Override public InternalRow produceResult(InternalRow input) {
      if (places == null) {
        places = RangePlaces.ofArguments(input.getUTF8String(0).toString(), types);
      }
      RangePlaces.Place place = places.place(input);
      return new GenericInternalRow(new Object[] {place.below(), place.step()});
    }
  }
}
