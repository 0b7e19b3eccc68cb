package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;

/** A statement of the SQL extension as a Spark command. */
final class LakeCommand extends CommandPlan {
  private final StructType columns;
  private final scala.collection.immutable.Seq<Attribute> output;
  private final Supplier<JsonNode> action;

  /**
   * `action` executes the statement and returns its rows. Each row has a value or null for every column of `columns`, which are strings,
   * longs and booleans. A statement without a result has no columns and no rows.
   */
  LakeCommand(String text, StructType columns, Supplier<JsonNode> action) {
    super(text);
    this.columns = columns;
    this.output = Scala.seq(new ArrayList<Attribute>(Scala.list(DataTypeUtils$.MODULE$.toAttributes(columns))));
    this.action = action;
  }

  @Override public scala.collection.immutable.Seq<Attribute> output() {
    return output;
  }

  @Override public scala.collection.immutable.Seq<Row> run(SparkSession session) {
    List<Row> rows = new ArrayList<>();
    for (JsonNode row : action.get()) {
      Object[] values = new Object[columns.size()];
      for (int i = 0; i < values.length; i++) {
        JsonNode value = row.get(i);
        boolean isLong = columns.apply(i).dataType() instanceof LongType;
        values[i] = value.isNull() ? null
            : isLong ? (Object) value.asLong() : value.isBoolean() ? (Object) value.asBoolean() : value.asText();
      }
      rows.add(RowFactory.create(values));
    }
    return Scala.seq(rows);
  }
}
