package tableformat.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** SP-98: whether a floating point value is a number, so that writes can sort NaN before all numbers; null for null. */
final class IsNumberFunction implements UnboundFunction {
  static final String NAME = "is_number";

  @Override public String description() {
    return NAME + "(column): whether a value is not NaN; for internal use by writes";
  }

  @Override public String name() {
    return NAME;
  }

  @Override public BoundFunction bind(StructType input) {
    return new Bound(input.apply(0).dataType());
  }

  /** Public, because Spark calls it from generated code. */
  public static final class Bound implements ScalarFunction<Boolean> {
    private final DataType type;

    Bound(DataType type) {
      this.type = type;
    }

    @Override public String name() {
      return NAME;
    }

    @Override public String canonicalName() {
      return "tableformat." + NAME;
    }

    @Override public DataType[] inputTypes() {
      return new DataType[] {type};
    }

    @Override public DataType resultType() {
      return DataTypes.BooleanType;
    }

    @Override public Boolean produceResult(InternalRow input) {
      if (input.isNullAt(0)) {
        return null;
      }
      return !Double.isNaN(type == DataTypes.FloatType ? input.getFloat(0) : input.getDouble(0));
    }
  }
}
