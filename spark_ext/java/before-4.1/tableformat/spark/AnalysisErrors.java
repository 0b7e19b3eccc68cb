package tableformat.spark;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import scala.Option;

/** Spark's exception for statements that cannot be analyzed. */
final class AnalysisErrors extends AnalysisException {
  private final String sqlState;

  private AnalysisErrors(String condition, String sqlState, String message, Throwable cause) {
    super(
        message, Option.empty(), Option.empty(), Option.apply(cause), Option.apply(condition),
        Scala.map(Map.of("message", message)), new QueryContext[0]);
    this.sqlState = sqlState;
  }

  static AnalysisException of(String condition, String sqlState, String message, Throwable cause) {
    return new AnalysisErrors(condition, sqlState, message, cause);
  }

  static String condition(AnalysisException error) {
    return error.getErrorClass();
  }

  /** Spark knows only the SQLSTATEs of its own error conditions. */
  @Override public String getSqlState() {
    return sqlState;
  }
}
