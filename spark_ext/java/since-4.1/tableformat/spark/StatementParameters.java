package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Statements that come with values for their parameters: Spark puts them into the text. Ours have none. */
interface StatementParameters extends ParserInterface {
  ParserInterface next();

  /** Null for a statement that is Spark's. */
  LogicalPlan parseOurs(String text) throws ParseException;

  @Override default LogicalPlan parsePlanWithParameters(String text, ParameterContext context) throws ParseException {
    LogicalPlan ours = parseOurs(text);
    return ours == null ? next().parsePlanWithParameters(text, context) : ours;
  }
}
