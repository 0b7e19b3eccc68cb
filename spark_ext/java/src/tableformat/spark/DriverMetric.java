package tableformat.spark;

import java.util.Map;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/**
 * A number about a plan or a commit that the driver knows and Spark's UI displays. Name and description are Iceberg's.
 *
 * <p>The class is public and has a constructor without arguments, because Spark's UI creates an instance to sum the values.
 */
public final class DriverMetric extends CustomSumMetric {
  private final String name;
  private final String description;

  public DriverMetric() {
    this("", "");
  }

  private DriverMetric(String name, String description) {
    this.name = name;
    this.description = description;
  }

  @Override public String name() {
    return name;
  }

  @Override public String description() {
    return description;
  }

  /**
   * Metrics with these names and descriptions, if Spark can display them. If the jar was added to a running session, Spark does not find
   * the class.
   */
  static CustomMetric[] forSpark(Map<String, String> descriptions) {
    var session = Sessions.found();
    if (session.isEmpty()) {
      return new CustomMetric[0];
    }
    ClassLoader loader = session.get().sharedState().jarClassLoader().getParent();
    try {
      return Class.forName(DriverMetric.class.getName(), false, loader) != DriverMetric.class
          ? new CustomMetric[0]
          : descriptions.entrySet().stream().map(each -> new DriverMetric(each.getKey(), each.getValue()))
              .toArray(CustomMetric[]::new);
    } catch (ClassNotFoundException e) {
      return new CustomMetric[0];
    }
  }

  static CustomTaskMetric valued(String name, long value) {
    return new CustomTaskMetric() {
      @Override public String name() {
        return name;
      }

      @Override public long value() {
        return value;
      }
    };
  }
}
