package tableformat.suite;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.catalog.Namespace;
import org.apache.spark.sql.SparkSession;

/** The lake of the class that is running: a directory whose SQLite file both catalogs open, ours and Iceberg's. */
public final class Lake {
  /** The name under which tables stand in the SQLite file (FM-2). */
  public static final String STORED_NAME = "tableformat";
  private static final Path ROOT = Path.of(System.getProperty("suite.lakes"));
  private static final Lake[] CURRENT = new Lake[1];

  private final Path directory;

  private Lake(Path directory) {
    this.directory = directory;
  }

  public static Lake current() {
    return CURRENT[0];
  }

  /** A new lake for a class; the processes that served the last one end. */
  public static Lake begin() {
    end();
    try {
      CURRENT[0] = new Lake(Files.createTempDirectory(ROOT, "lake"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return CURRENT[0];
  }

  public static void end() {
    ProcessHandle.current().children().forEach(ProcessHandle::destroy);
  }

  public Path directory() {
    return directory;
  }

  /** Options with which Iceberg's JDBC catalog opens the same file. */
  public Map<String, String> validationProperties() {
    return Map.of(
        "uri", "jdbc:sqlite:" + directory.resolve("catalog.db"), "warehouse", "file://" + directory,
        "jdbc.schema-version", "V1", "clients", "1");
  }

  /** Registers the lake as a catalog of the session; of Iceberg's options those go along that are about tables and names. */
  public void register(SparkSession spark, String name, Map<String, String> options) {
    Map<String, String> all = new HashMap<>();
    options.forEach((option, value) -> {
      if (option.startsWith("table-") || option.equals("default-namespace")) {
        all.put(option, value);
      }
    });
    all.put("warehouse", directory.toString());
    all.put("python", System.getProperty("suite.python"));
    String prefix = "spark.sql.catalog." + name;
    spark.conf().set(prefix, "tableformat.spark.LakeCatalog");
    all.forEach((option, value) -> spark.conf().set(prefix + "." + option, value));
  }

  public void ensureNamespace(SparkSession spark, String catalog, Namespace namespace) {
    spark.sql("CREATE NAMESPACE IF NOT EXISTS " + catalog + "." + namespace);
  }
}
