package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** SP-82: before 4.0 no rule comes before Spark holds a write's columns against the table's. `mergeSchema` is refused. */
final class SchemaMerging {
  private SchemaMerging() {}

  static void heed(SparkSessionExtensions extensions) {}
}
