package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Spark's parsers accept only one statement in this version. */
interface Splitting extends ParserInterface {
  ParserInterface next();
}
