package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;

/** MERGE WITH SCHEMA EVOLUTION changes the table. `LakeCatalog.alterTable` refuses changes that the owner of the table does not allow. */
final class MergeEvolution {
  private MergeEvolution() {}

  static void check(SparkSessionExtensions extensions) {}

  static void checkStatement(LakeTable table) {}
}
