package tableformat.spark;

import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The read options `versionAsOf` and `timestampAsOf`, which Spark 3.5 ignores for tables of catalogs. */
final class TimeTravelOptions {
  private TimeTravelOptions() {}

  static void check(CaseInsensitiveStringMap options) {
    for (String name : new String[] {"versionAsOf", "timestampAsOf"}) {
      if (options.containsKey(name)) {
        throw Errors.unsupported(
            "The option " + name + " has no effect in Spark 3.5. Use snapshot-id, as-of-timestamp, tag or branch, or "
                + "VERSION AS OF in SQL.");
      }
    }
  }
}
