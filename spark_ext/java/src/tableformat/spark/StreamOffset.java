package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** The position of a stream, as written by Python. It is not interpreted here. */
final class StreamOffset extends Offset {
  private final String json;

  StreamOffset(String json) {
    this.json = json;
  }

  @Override public String json() {
    return json;
  }

  JsonNode tree() {
    return Json.parse(json);
  }
}
