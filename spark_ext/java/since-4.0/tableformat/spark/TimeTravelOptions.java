package tableformat.spark;

import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The read options `versionAsOf` and `timestampAsOf`, which Spark handles itself in this version. */
final class TimeTravelOptions {
  private TimeTravelOptions() {}

  static void check(CaseInsensitiveStringMap options) {}
}
