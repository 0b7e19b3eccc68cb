package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.TableChange;

/** ALTER COLUMN SET DEFAULT and DROP DEFAULT. */
final class NewDefaults {
  private NewDefaults() {}

  /** In this version, Spark passes only the text of a new default. */
  static void put(ObjectNode json, TableChange.UpdateColumnDefaultValue change) {
    if (!change.newDefaultValue().isEmpty()) {
      throw Errors.unsupported(
          "ALTER COLUMN SET DEFAULT needs Spark 4.1; in this version, set a DEFAULT in CREATE TABLE or ADD COLUMN.");
    }
    json.putNull("default");
  }
}
