package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** SP-98: before 4.0, no extension rule runs before Spark compares the columns of a write with those of the table. */
final class ReplacementColumns {
  private ReplacementColumns() {}

  static void accept(SparkSessionExtensions extensions) {}
}
