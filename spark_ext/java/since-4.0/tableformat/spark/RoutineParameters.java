package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.types.StructType;

/** What the next parser is asked about parameters of routines. */
interface RoutineParameters extends ParserInterface {
  ParserInterface next();

  @Override default StructType parseRoutineParam(String text) throws ParseException {
    return next().parseRoutineParam(text);
  }
}
