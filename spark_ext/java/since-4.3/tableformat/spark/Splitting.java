package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.SqlStatementSplitResult;
import org.apache.spark.sql.catalyst.parser.TemporalIdentifier;

/** What the next parser is asked about several statements in one text, and about names with a state. */
interface Splitting extends ParserInterface {
  ParserInterface next();

  @Override default SqlStatementSplitResult splitStatements(String text) {
    return next().splitStatements(text);
  }

  @Override default TemporalIdentifier parseTemporalTableIdentifier(String text) throws ParseException {
    return next().parseTemporalTableIdentifier(text);
  }
}
