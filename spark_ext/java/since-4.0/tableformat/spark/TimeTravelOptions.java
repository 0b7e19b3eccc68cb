package tableformat.spark;

import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The options `versionAsOf` and `timestampAsOf` of a read, which Spark heeds itself. */
final class TimeTravelOptions {
  private TimeTravelOptions() {}

  static void check(CaseInsensitiveStringMap options) {}
}
