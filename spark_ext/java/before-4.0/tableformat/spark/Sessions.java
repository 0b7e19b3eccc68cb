package tableformat.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSession$;
import scala.Option;

/** The session of a statement: Spark 4 has another class for one that is not of a Connect client. */
final class Sessions {
  private Sessions() {}

  static SparkSession active() {
    return SparkSession.active();
  }

  /** None where a catalog is used without a session. */
  static Option<SparkSession> found() {
    return SparkSession$.MODULE$.getActiveSession();
  }
}
