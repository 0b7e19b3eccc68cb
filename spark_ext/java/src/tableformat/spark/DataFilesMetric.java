package tableformat.spark;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** How many data files a scan reads, after everything that rules files out. */
public final class DataFilesMetric extends CustomSumMetric {
  private static final String NAME = "dataFiles";

  /**
   * The metric where Spark can show it: what shows metrics makes one of the class itself, and does not find it where the
   * jar was added to a running session.
   */
  static CustomMetric[] forSpark() {
    var session = Sessions.found();
    if (session.isEmpty()) {
      return new CustomMetric[0];
    }
    ClassLoader loader = session.get().sharedState().jarClassLoader().getParent();
    try {
      return Class.forName(DataFilesMetric.class.getName(), false, loader) == DataFilesMetric.class
          ? new CustomMetric[] {new DataFilesMetric()} : new CustomMetric[0];
    } catch (ClassNotFoundException e) {
      return new CustomMetric[0];
    }
  }

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
