package tableformat.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** How many data files a scan reads, after everything that rules files out. */
public final class DataFilesMetric extends CustomSumMetric {
  private static final String NAME = "dataFiles";

  static CustomTaskMetric of(long count) {
    return new CustomTaskMetric() {
      @Override public String name() {
        return NAME;
      }

      @Override public long value() {
        return count;
      }
    };
  }

  @Override public String name() {
    return NAME;
  }

  @Override public String description() {
    return "number of data files read";
  }
}
