package tableformat.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkEnv;

/** The application that statements run in, as recorded in snapshots. */
final class Applications {
  private Applications() {}

  /** The environment under Iceberg's names. If no application is running, it contains only the engine. */
  static Map<String, String> environment() {
    Map<String, String> environment = new HashMap<>();
    environment.put("engine-name", "spark");
    environment.put("engine-version", org.apache.spark.package$.MODULE$.SPARK_VERSION());
    SparkEnv running = SparkEnv.get();
    if (running != null && running.conf().contains("spark.app.id")) {
      environment.put("app-id", running.conf().get("spark.app.id"));
      environment.put("spark.app.id", running.conf().get("spark.app.id"));
      environment.put("app-name", running.conf().get("spark.app.name"));
    }
    return environment;
  }
}
