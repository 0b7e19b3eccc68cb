package tableformat.spark;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedSubqueryColumnAliases;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.command.ExplainCommand;

/** UPSERT INTO and INSERT IGNORE INTO, as Kudu and Impala have them: an append with the option `operation` (SQ-32, SQ-33). */
final class Upserts {
  private Upserts() {}

  /** The plan of the statement; null where it is another one, or its table is not ours. */
  static LogicalPlan parse(SqlCursor in, ParserInterface spark) throws ParseException {
    int word = in.peek().start();
    if (in.take("UPSERT", "INTO")) {
      return parse(in, spark, word, "INSERT", "UPSERT INTO", "upsert");
    }
    if (in.take("INSERT")) {
      word = in.peek().start();
      return in.take("IGNORE", "INTO") ? parse(in, spark, word, "      ", "INSERT IGNORE INTO", "insert-ignore") : null;
    }
    return null;
  }

  /** `instead` has as many letters as the word that Spark's grammar lacks, so that its errors name the places of the statement. */
  private static LogicalPlan parse(
      SqlCursor in, ParserInterface spark, int word, String instead, String statement, String operation) throws ParseException {
    in.take("TABLE");
    TableNames.Target target = in.isAtName() ? TableNames.ours(in.names("a table")) : null;
    if (target == null) {
      return null;
    }
    String text = in.text();
    LogicalPlan plan = spark.parsePlan(text.substring(0, word) + instead + text.substring(word + instead.length()));
    return plan instanceof ExplainCommand explained
        ? new ExplainCommand(written(explained.logicalPlan(), target, statement, operation), explained.mode())
        : written(plan, target, statement, operation);
  }

  private static LogicalPlan written(LogicalPlan plan, TableNames.Target target, String statement, String operation) {
    if (!(plan instanceof InsertIntoStatement insert) || !(insert.table() instanceof UnresolvedRelation relation)
        || insert.partitionSpec().nonEmpty() || InsertReplace.isReplacement(insert)) {
      throw Errors.unsupported(
          statement + " " + Names.quoted(target.catalog().name(), target.identifier())
              + ": after the table, optional columns and one query or VALUES are expected. Nothing was written.");
    }
    List<String> columns = Scala.list(insert.userSpecifiedCols());
    try {
      if (!(target.catalog().loadTable(target.identifier()) instanceof LakeTable table)) {
        return plan; // Spark refuses it itself.
      }
      checkComplete(table, columns, statement);
    } catch (NoSuchTableException e) {
      return plan; // Spark says so itself.
    }
    LogicalPlan rows =
        columns.isEmpty() ? insert.query() : new UnresolvedSubqueryColumnAliases(insert.userSpecifiedCols(), insert.query());
    return NewAppend.of(
        relation, rows, Scala.map(Map.of(Replacement.OPERATION, operation)), insert.byName() || !columns.isEmpty());
  }

  /** CP-27: the value of a column that is left out is not known, and the stored one would be lost. */
  private static void checkComplete(LakeTable table, List<String> columns, String statement) {
    List<String> missing = columns.isEmpty() ? List.of()
        : Arrays.stream(table.schema().fieldNames()).filter(name -> Replacement.find(columns, name) < 0).toList();
    if (!missing.isEmpty()) {
      throw Errors.unsupported(
          statement + " " + table.name() + " (" + String.join(", ", columns) + "): the statement writes whole rows, but the columns ("
              + String.join(", ", missing) + ") are missing. Nothing was written. List all columns, or use MERGE INTO, which keeps the "
              + "values of the other columns.");
    }
  }
}
