package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** SP-98: before 4.0 no rule comes before Spark holds a write's columns against the table's. */
final class ReplacementColumns {
  private ReplacementColumns() {}

  static void accept(SparkSessionExtensions extensions) {}
}
