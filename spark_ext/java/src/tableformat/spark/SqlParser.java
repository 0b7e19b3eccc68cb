package tableformat.spark;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.VariableSubstitution;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** A parser for statements of our grammar on tables of our catalogs. It delegates all other statements to the next parser. */
final class SqlParser implements RoutineParameters, StatementParameters, Splitting {
  private final ParserInterface next;

  SqlParser(ParserInterface next) {
    this.next = next;
  }

  @Override public ParserInterface next() {
    return next;
  }

  /** SQ-1: null if the statement is not of our grammar, or not about a table of ours. */
  public LogicalPlan parseOurs(String text) throws ParseException {
    return SqlStatements.mayBegin(text)
        ? SqlStatements.parse(new SqlCursor(new VariableSubstitution().substitute(text)), next) : null;
  }

  @Override public LogicalPlan parsePlan(String text) throws ParseException {
    LogicalPlan ours = parseOurs(text);
    return ours == null ? next.parsePlan(text) : ours;
  }

  @Override public LogicalPlan parseQuery(String text) throws ParseException {
    return next.parseQuery(text);
  }

  @Override public Expression parseExpression(String text) throws ParseException {
    return next.parseExpression(text);
  }

  @Override public TableIdentifier parseTableIdentifier(String text) throws ParseException {
    return next.parseTableIdentifier(text);
  }

  @Override public FunctionIdentifier parseFunctionIdentifier(String text) throws ParseException {
    return next.parseFunctionIdentifier(text);
  }

  @Override public scala.collection.immutable.Seq<String> parseMultipartIdentifier(String text) throws ParseException {
    return Scala.seq(Scala.list(next.parseMultipartIdentifier(text)));
  }

  @Override public StructType parseTableSchema(String text) throws ParseException {
    return next.parseTableSchema(text);
  }

  @Override public DataType parseDataType(String text) throws ParseException {
    return next.parseDataType(text);
  }
}
