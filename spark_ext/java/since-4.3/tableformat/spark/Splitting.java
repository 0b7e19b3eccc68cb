package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.SqlStatementSplitResult;
import org.apache.spark.sql.catalyst.parser.TemporalIdentifier;

/** Delegates splitting a text into statements, and parsing names with a state, to the next parser. */
interface Splitting extends ParserInterface {
  ParserInterface next();

  @Override default SqlStatementSplitResult splitStatements(String text) {
    return next().splitStatements(text);
  }

  @Override default TemporalIdentifier parseTemporalTableIdentifier(String text) throws ParseException {
    return next().parseTemporalTableIdentifier(text);
  }
}
