package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** MERGE WITH SCHEMA EVOLUTION is a syntax error here. */
final class MergeEvolution {
  private MergeEvolution() {}

  static void check(SparkSessionExtensions extensions) {}

  static void checkStatement(LakeTable table) {}
}
