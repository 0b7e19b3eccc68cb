package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;

/** A statement of the SQL extension, which Python carries out; a command of Spark's that somebody else runs. */
final class LakeCommand extends CommandPlan {
  private final TableNames.Target table;
  private final ObjectNode statement;
  private final StructType columns;
  private final scala.collection.immutable.Seq<Attribute> output;

  /** `columns` are those of the result, texts and longs; without any the statement has no rows. */
  LakeCommand(TableNames.Target table, String text, ObjectNode statement, StructType columns) {
    super(text);
    this.table = table;
    this.statement = statement;
    this.columns = columns;
    this.output = Scala.seq(new ArrayList<Attribute>(Scala.list(DataTypeUtils$.MODULE$.toAttributes(columns))));
  }

  @Override public scala.collection.immutable.Seq<Attribute> output() {
    return output;
  }

  @Override public scala.collection.immutable.Seq<Row> run(SparkSession session) {
    try {
      ObjectNode arguments = Json.table(table.identifier()).set("statement", statement);
      arguments.put("case_sensitive", Sessions.active().sessionState().conf().caseSensitiveAnalysis());
      return Scala.seq(rows(table.catalog().runStatement(table.identifier(), arguments)));
    } catch (NoSuchTableException e) {
      throw Errors.unchecked(e);
    } finally {
      TableNames.refreshCached(table.catalog(), table.identifier());
    }
  }

  private List<Row> rows(JsonNode described) {
    List<Row> rows = new ArrayList<>();
    for (JsonNode row : described) {
      Object[] values = new Object[columns.size()];
      for (int i = 0; i < values.length; i++) {
        JsonNode value = row.get(i);
        boolean isLong = columns.apply(i).dataType() instanceof LongType;
        values[i] = value.isNull() ? null : isLong ? (Object) value.asLong() : value.asText();
      }
      rows.add(RowFactory.create(values));
    }
    return rows;
  }
}
