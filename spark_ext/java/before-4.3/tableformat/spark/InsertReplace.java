package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** Spark's grammar has no INSERT INTO ... REPLACE USING and REPLACE ON yet (SQ-31). */
final class InsertReplace {
  private InsertReplace() {}

  static void heed(SparkSessionExtensions extensions) {}
}
