package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** Displays values from the summary of a new snapshot in Spark's UI (SP-51). */
final class CommitMetrics {
  private record Metric(String name, String description) {}

  /** By the name in the summary. */
  private static final Map<String, Metric> METRICS = Map.ofEntries(
      metric("added-data-files", "addedDataFiles", "number of added data files"),
      metric("added-delete-files", "addedDeleteFiles", "number of added delete files"),
      metric("added-equality-delete-files", "addedEqualityDeleteFiles", "number of added equality delete files"),
      metric("added-equality-deletes", "addedEqualityDeletes", "number of added equality deletes records"),
      metric("added-files-size", "addedFileSizeInBytes", "total size of added files (bytes)"),
      metric("added-position-delete-files", "addedPositionalDeleteFiles", "number of added positional delete files"),
      metric("added-position-deletes", "addedPositionalDeletes", "number of added positional deletes records"),
      metric("added-records", "addedRecords", "number of added records"),
      metric("deleted-data-files", "removedDataFiles", "number of removed data files"),
      metric("removed-delete-files", "removedDeleteFiles", "number of removed delete files"),
      metric("removed-equality-delete-files", "removedEqualityDeleteFiles", "number of removed equality delete files"),
      metric("removed-equality-deletes", "removedEqualityDeletes", "number of removed equality deletes records"),
      metric("removed-files-size", "removedFileSizeInBytes", "total size of removed files (bytes)"),
      metric(
          "removed-position-delete-files", "removedPositionalDeleteFiles", "number of removed positional delete files"),
      metric("removed-position-deletes", "removedPositionalDeletes", "number of removed positional deletes records"),
      metric("deleted-records", "removedRecords", "number of removed records"),
      metric("total-data-files", "totalDataFiles", "total number of data files"),
      metric("total-delete-files", "totalDeleteFiles", "total number of delete files"),
      metric("total-equality-deletes", "totalEqualityDeletes", "total number of equality deletes records"),
      metric("total-files-size", "totalFileSizeInBytes", "total file size (bytes)"),
      metric("total-position-deletes", "totalPositionalDeletes", "total number of positional deletes records"),
      metric("total-records", "totalRecords", "total number of records"));

  private CommitMetrics() {}

  private static Map.Entry<String, Metric> metric(String inSummary, String name, String description) {
    return Map.entry(inSummary, new Metric(name, description));
  }

  static CustomMetric[] forSpark() {
    return DriverMetric.forSpark(
        METRICS.values().stream().collect(Collectors.toMap(Metric::name, Metric::description)));
  }

  /** Empty before a commit, and if the batch had already been committed. A summary omits numbers that are 0. */
  static CustomTaskMetric[] of(JsonNode summary) {
    return summary == null || summary.isNull() || summary.isMissingNode()
        ? new CustomTaskMetric[0]
        : METRICS.entrySet().stream()
            .map(each -> DriverMetric.valued(each.getValue().name(), summary.path(each.getKey()).asLong(0)))
            .toArray(CustomTaskMetric[]::new);
  }
}
