package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Spark's parsers know no parameters of routines. */
interface RoutineParameters extends ParserInterface {
  ParserInterface next();
}
