package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Spark's parsers do not parse parameters of routines in this version. */
interface RoutineParameters extends ParserInterface {
  ParserInterface next();
}
