package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Converts Python's statistics of the columns of a scan to the form of Spark's optimizer (SP-38). */
final class ColumnEstimates {
  private ColumnEstimates() {}

  /** `columns` has the known statistics of each column, by name. */
  static Map<NamedReference, ColumnStatistics> of(JsonNode columns, StructType schema) {
    Map<NamedReference, ColumnStatistics> result = new HashMap<>();
    for (StructField field : schema.fields()) {
      JsonNode told = columns == null ? null : columns.get(field.name());
      if (told != null) {
        result.put(Expressions.column(Names.quoted(field.name())), statistics(told, field.dataType()));
      }
    }
    return result;
  }

  private static ColumnStatistics statistics(JsonNode told, DataType type) {
    return new ColumnStatistics() {
      @Override public OptionalLong distinctCount() {
        return count(told.get("distinct"));
      }

      @Override public OptionalLong nullCount() {
        return count(told.get("nulls"));
      }

      @Override public Optional<Object> min() {
        return Optional.ofNullable(told.get("min")).map(value -> value(value.asText(), type));
      }

      @Override public Optional<Object> max() {
        return Optional.ofNullable(told.get("max")).map(value -> value(value.asText(), type));
      }
    };
  }

  private static OptionalLong count(JsonNode number) {
    return number == null ? OptionalLong.empty() : OptionalLong.of(number.asLong());
  }

  /** The value in Spark's internal form: dates are days, timestamps are microseconds. */
  private static Object value(String text, DataType type) {
    if (type instanceof DecimalType decimal) {
      return Decimal.apply(new BigDecimal(text), decimal.precision(), decimal.scale());
    } else if (type instanceof FloatType) {
      return Float.valueOf(text);
    } else if (type instanceof DoubleType) {
      return Double.valueOf(text);
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return Integer.valueOf(text);
    }
    return Long.valueOf(text);
  }
}
