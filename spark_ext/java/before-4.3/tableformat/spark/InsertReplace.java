package tableformat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.command.ExplainCommand;

/** INSERT INTO ... REPLACE USING as an append with an option (SQ-31, SQ-34). Spark's grammar has the statement since 4.3. */
final class InsertReplace {
  private InsertReplace() {}

  static void heed(SparkSessionExtensions extensions) {}

  /** Whether the statement states which rows it replaces. Spark's grammar supports this since 4.3. */
  static boolean isReplacement(InsertIntoStatement insert) {
    return false;
  }

  /**
   * The plan of the statement, starting after INSERT INTO; null if it does not have the clause. Spark parses the text without the clause.
   */
  static LogicalPlan parse(SqlCursor in, ParserInterface spark) throws ParseException {
    in.take("TABLE");
    TableNames.Target target = in.isAtName() ? TableNames.ours(in.names("a table")) : null;
    if (target == null) {
      return null;
    }
    in.take("BY", "NAME");
    int start = in.peek().start();
    if (!in.take("REPLACE", "USING")) {
      return null;
    }
    in.expectSign("(");
    List<String> columns = new ArrayList<>();
    do {
      columns.add(in.name("a column"));
    } while (in.takeSign(","));
    in.expectSign(")");
    int stop = in.peek().start();
    String text = in.text();
    // The clause is replaced by spaces, so that Spark's errors report the positions of the original statement.
    LogicalPlan plan = spark.parsePlan(
        text.substring(0, start) + text.substring(start, stop).replaceAll("\\S", " ") + text.substring(stop));
    return plan instanceof ExplainCommand explained
        ? new ExplainCommand(replacing(explained.logicalPlan(), target, columns), explained.mode()) : replacing(plan, target, columns);
  }

  private static LogicalPlan replacing(LogicalPlan plan, TableNames.Target target, List<String> columns) {
    if (!(plan instanceof InsertIntoStatement insert) || !(insert.table() instanceof UnresolvedRelation relation)) {
      throw Errors.unsupported("INSERT INTO ... REPLACE USING requires the rows of one query.");
    }
    try {
      if (!(target.catalog().loadTable(target.identifier()) instanceof LakeTable table)) {
        return plan; // Spark raises the error.
      }
      // The options are not set on the relation, because Spark may use a relation of the same table that the query reads.
      var options = Scala.map(ReplacedPrefix.of(table, columns));
      return NewAppend.of(relation, insert.query(), options, insert.byName());
    } catch (NoSuchTableException e) {
      return plan; // Spark raises the error.
    }
  }
}
