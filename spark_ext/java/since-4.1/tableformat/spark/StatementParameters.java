package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Statements with parameter values, which Spark substitutes in the text. Statements of our grammar do not have parameters. */
interface StatementParameters extends ParserInterface {
  ParserInterface next();

  /** Null if the statement is not of our grammar. */
  LogicalPlan parseOurs(String text) throws ParseException;

  @Override default LogicalPlan parsePlanWithParameters(String text, ParameterContext context) throws ParseException {
    LogicalPlan ours = parseOurs(text);
    return ours == null ? next().parsePlanWithParameters(text, context) : ours;
  }
}
