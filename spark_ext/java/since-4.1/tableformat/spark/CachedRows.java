package tableformat.spark;

import java.util.List;

/** Rows of tables that Spark has cached. */
final class CachedRows {
  private CachedRows() {}

  static void refresh(List<String> tableName) {
    var spark = Sessions.active();
    spark.sharedState().cacheManager().recacheTableOrView(spark, Scala.seq(tableName), true);
  }
}
