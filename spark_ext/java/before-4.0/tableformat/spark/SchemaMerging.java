package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/**
 * SP-82: before 4.0, no extension rule runs before Spark compares the columns of a write with those of the table. `mergeSchema` is refused.
 */
final class SchemaMerging {
  private SchemaMerging() {}

  static void heed(SparkSessionExtensions extensions) {}
}
