package tableformat.spark;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import scala.Option;

/** Spark's exception for statements that cannot be analyzed. */
final class AnalysisErrors {
  private AnalysisErrors() {}

  static AnalysisException of(String condition, String sqlState, String message, Throwable cause) {
    return new AnalysisException(
        message, Option.empty(), Option.empty(), Option.apply(cause), Option.apply(condition),
        Scala.map(Map.of("message", message)), new QueryContext[0], Option.apply(sqlState), Option.apply("<message>"));
  }

  static String condition(AnalysisException error) {
    return error.getCondition();
  }
}
