package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.types.StructType;

/** Delegates calls about parameters of routines to the next parser. */
interface RoutineParameters extends ParserInterface {
  ParserInterface next();

  @Override default StructType parseRoutineParam(String text) throws ParseException {
    return next().parseRoutineParam(text);
  }
}
