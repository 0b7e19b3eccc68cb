package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** In this version, Spark substitutes parameters in plans, not in the text of statements. */
interface StatementParameters extends ParserInterface {
  ParserInterface next();
}
