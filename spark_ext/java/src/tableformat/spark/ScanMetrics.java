package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** Displays the numbers of files and manifests that a plan read, skipped and returned in Spark's UI (SP-51). */
final class ScanMetrics {
  private static final String DURATION = "totalPlanningDuration";
  private static final Map<String, String> DESCRIPTIONS = Map.ofEntries(
      Map.entry(DURATION, "total planning duration (ms)"),
      Map.entry("totalDataManifest", "total data manifests"),
      Map.entry("scannedDataManifests", "number of scanned data manifests"),
      Map.entry("skippedDataManifests", "number of skipped data manifests"),
      Map.entry("resultDataFiles", "number of result data files"),
      Map.entry("skippedDataFiles", "number of skipped data files"),
      Map.entry("totalDataFileSize", "total data file size (bytes)"),
      Map.entry("totalDeleteManifests", "total delete manifests"),
      Map.entry("scannedDeleteManifests", "number of scanned delete manifests"),
      Map.entry("skippedDeleteManifests", "number of skipped delete manifest"),
      Map.entry("totalDeleteFileSize", "total delete file size (bytes)"),
      Map.entry("resultDeleteFiles", "number of result delete files"),
      Map.entry("equalityDeleteFiles", "number of equality delete files"),
      Map.entry("indexedDeleteFiles", "number of indexed delete files"),
      Map.entry("positionalDeleteFiles", "number of positional delete files"),
      Map.entry("skippedDeleteFiles", "number of skipped delete files"));

  /** Names in a scan report that differ from the hyphenated name of the metric. */
  private static final Map<String, String> REPORTED = Map.of(
      "totalDataManifest", "total-data-manifests", "totalDataFileSize", "total-file-size-in-bytes",
      "totalDeleteFileSize", "total-delete-file-size-in-bytes");

  private ScanMetrics() {}

  static CustomMetric[] forSpark() {
    return DriverMetric.forSpark(DESCRIPTIONS);
  }

  /** `counts` are those of a scan report, or null if the plan does not read a single snapshot. */
  static CustomTaskMetric[] of(JsonNode counts, long planningNanos) {
    Stream<CustomTaskMetric> values = DESCRIPTIONS.keySet().stream().filter(name -> counts.has(reported(name)))
        .map(name -> DriverMetric.valued(name, counts.get(reported(name)).asLong()));
    long millis = Math.max(1, planningNanos / 1_000_000);
    return Stream.concat(values, Stream.of(DriverMetric.valued(DURATION, millis))).toArray(CustomTaskMetric[]::new);
  }

  private static String reported(String name) {
    return REPORTED.getOrDefault(name, name.replaceAll("([A-Z])", "-$1").toLowerCase());
  }
}
