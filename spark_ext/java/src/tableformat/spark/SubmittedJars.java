package tableformat.spark;

import java.util.List;
import org.apache.spark.SparkContext;

/**
 * Jars that the program was submitted with, for executors.
 *
 * <p>`spark-submit` adds those of `--jars` and of `spark.jars.packages` to `spark.jars`, as a property of this JVM. A session whose builder sets
 * `spark.jars` itself, as `spark_ext.configure` does, hides that list: the driver has the jars and executors do not.
 */
final class SubmittedJars {
  private static final String JARS = "spark.jars";

  private SubmittedJars() {}

  /** Once for a context: jars that it has are left out. */
  static void sendToExecutors(SparkContext context) {
    if (context.isLocal()) {
      return;
    }
    List<String> sent = List.of(context.getConf().get(JARS, "").split(","));
    List<String> known = Scala.list(context.listJars());
    for (String jar : System.getProperty(JARS, "").split(",")) {
      if (!jar.isBlank() && !sent.contains(jar) && known.stream().noneMatch(each -> nameOf(each).equals(nameOf(jar)))) {
        context.addJar(jar);
      }
    }
  }

  private static String nameOf(String jar) {
    return jar.substring(jar.lastIndexOf('/') + 1);
  }
}
