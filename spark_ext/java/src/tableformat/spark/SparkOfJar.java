package tableformat.spark;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** The version of Spark that this jar was compiled for. `spark_ext/jar.py` writes it next to the classes. */
final class SparkOfJar {
  private SparkOfJar() {}

  /**
   * Raises an error that names the right jar if a different minor version is running. Otherwise incompatible calls would fail much later.
   */
  static void check() {
    String expected = minor(compiled());
    String running = org.apache.spark.package$.MODULE$.SPARK_VERSION();
    if (!expected.equals(minor(running))) {
      throw Errors.unsupported(
          "This jar of the catalog is for Spark " + expected + ", but this is Spark " + running + ". Use the jar from "
              + "`python -m spark_ext --spark " + minor(running) + "`.");
    }
  }

  private static String compiled() {
    try (InputStream text = SparkOfJar.class.getResourceAsStream("spark-version")) {
      return new String(text.readAllBytes(), StandardCharsets.UTF_8).strip();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String minor(String version) {
    String[] parts = version.split("\\.");
    return parts[0] + "." + parts[1];
  }
}
