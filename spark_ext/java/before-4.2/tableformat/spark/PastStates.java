package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** Spark runs a data frame on the tables that it was made with, or looks them up again by version and name. */
final class PastStates {
  private PastStates() {}

  static void keep(SparkSessionExtensions extensions) {}
}
