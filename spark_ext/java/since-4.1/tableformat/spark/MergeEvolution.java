package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** MERGE WITH SCHEMA EVOLUTION changes the table. */
final class MergeEvolution {
  private MergeEvolution() {}

  static void check(SparkSessionExtensions extensions) {}
}
