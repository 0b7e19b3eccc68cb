package tableformat.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.CatalystTypeConverters$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.types.StructType;

/** CALL as a Spark command. Its result is the rows that the procedure returns. */
final class CallCommand extends CommandPlan {
  private final StructType columns;
  private final scala.collection.immutable.Seq<Attribute> output;
  private final Supplier<ArrowRows.Rows> action;

  /** `columns` is the schema of the rows that `action` returns. */
  CallCommand(String text, StructType columns, Supplier<ArrowRows.Rows> action) {
    super(text);
    this.columns = columns;
    this.output = Scala.seq(new ArrayList<Attribute>(Scala.list(DataTypeUtils$.MODULE$.toAttributes(columns))));
    this.action = action;
  }

  @Override public scala.collection.immutable.Seq<Attribute> output() {
    return output;
  }

  @Override public scala.collection.immutable.Seq<Row> run(SparkSession session) {
    var converter = CatalystTypeConverters$.MODULE$.createToScalaConverter(columns);
    List<Row> rows = new ArrayList<>();
    for (InternalRow row : action.get().rows()) {
      rows.add((Row) converter.apply(row));
    }
    return Scala.seq(rows);
  }
}
