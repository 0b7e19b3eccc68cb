package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;

/** The statements of the SQL extension, told from all others by their first words (specs/spark-sql.md). */
final class SqlStatements {
  private static final Set<String> FIRST_WORDS = Set.of("ALTER");
  private static final StructType NO_ROWS = new StructType();

  private SqlStatements() {}

  /** Whether the first word is one of ours; reads no further. */
  static boolean mayBegin(String text) {
    return FIRST_WORDS.stream().anyMatch(new SqlCursor(text).peek()::isWord);
  }

  /** The plan of a statement, null where it is Spark's, or of another catalog. A syntax error is a ParseException. */
  static LogicalPlan parse(SqlCursor in, ParserInterface spark) {
    if (in.take("ALTER", "TABLE") && in.isAtName()) {
      return alterTable(in);
    }
    return null;
  }

  private static LogicalPlan alterTable(SqlCursor in) {
    List<String> name = in.names("a part of the table's name");
    Function<SqlCursor, ObjectNode> clause =
        SqlRefs.isAt(in) ? SqlRefs::parse : SqlLayout.isAt(in) ? SqlLayout::parse : null;
    TableNames.Target table = clause == null ? null : TableNames.ours(name);
    return table == null ? null : command(in, table, clause.apply(in));
  }

  private static LogicalPlan command(SqlCursor in, TableNames.Target table, ObjectNode statement) {
    return new LakeCommand(table, in.text(), statement, NO_ROWS);
  }
}
