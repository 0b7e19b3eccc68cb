package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Spark's parsers take one statement. */
interface Splitting extends ParserInterface {
  ParserInterface next();
}
