package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Spark puts parameters into plans, not into the text of statements. */
interface StatementParameters extends ParserInterface {
  ParserInterface next();
}
