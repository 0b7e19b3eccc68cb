package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** In this version, MERGE WITH SCHEMA EVOLUTION is a syntax error. */
final class MergeEvolution {
  private MergeEvolution() {}

  static void check(SparkSessionExtensions extensions) {}

  static void checkStatement(LakeTable table) {}
}
