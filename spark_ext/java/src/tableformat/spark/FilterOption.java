package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;

/**
 * FM-27: a column that gets a Bloom filter in each row group.
 *
 * @param distinctCount the number of distinct values that a filter is sized for; null for the actual number in the row group
 * @param mostValues the number of values for which a filter has {@code maxBytes}
 */
record FilterOption(String column, double falsePositiveRate, Long distinctCount, long mostValues, int maxBytes)
    implements Serializable {
  static FilterOption of(JsonNode option) {
    JsonNode count = option.get("distinct_count");
    return new FilterOption(option.get("column").asText(), option.get("false_positive_rate").asDouble(),
        count.isNull() ? null : count.asLong(), option.get("most_values").asLong(), option.get("max_bytes").asInt());
  }
}
