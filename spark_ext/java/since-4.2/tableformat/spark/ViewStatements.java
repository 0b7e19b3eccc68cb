package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Since 4.2, Spark executes the statements for views itself. */
final class ViewStatements {
  private ViewStatements() {}

  static LogicalPlan parse(String text, ParserInterface spark) {
    return null;
  }

  static void readViews(SparkSessionExtensions extensions) {}
}
