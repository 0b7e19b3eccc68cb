package tableformat.spark;

import java.util.List;
import org.apache.spark.SparkContext;

/**
 * Sends the jars that the program was submitted with to executors.
 *
 * <p>`spark-submit` adds the jars of `--jars` and of `spark.jars.packages` to `spark.jars`, as a property of this JVM. If the builder of a
 * session sets `spark.jars` itself, as `spark_ext.configure` does, that list is overridden. The driver then has the jars but executors do
 * not.
 */
final class SubmittedJars {
  private static final String JARS = "spark.jars";

  private SubmittedJars() {}

  /** Adds the jars to a context. Jars that the context already has are skipped. */
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
