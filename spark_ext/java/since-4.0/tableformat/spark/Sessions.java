package tableformat.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import scala.Option;

/** The session of a statement. Spark 4 has a separate class for sessions that do not belong to a Connect client. */
final class Sessions {
  private Sessions() {}

  static SparkSession active() {
    return SparkSession.active();
  }

  /** Empty if a catalog is used without a session. */
  static Option<SparkSession> found() {
    return SparkSession$.MODULE$.getActiveSession();
  }

  /** The rows of a plan. */
  static Dataset<Row> rows(LogicalPlan plan) {
    return Dataset$.MODULE$.ofRows(active(), plan);
  }
}
