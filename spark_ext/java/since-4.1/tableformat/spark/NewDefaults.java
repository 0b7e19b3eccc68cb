package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.TableChange;

/** ALTER COLUMN SET DEFAULT and DROP DEFAULT. */
final class NewDefaults {
  private NewDefaults() {}

  static void put(ObjectNode json, TableChange.UpdateColumnDefaultValue change) {
    if (change.newCurrentDefault() == null) {
      json.putNull("default");
    } else if (change.newCurrentDefault().getExpression() == null) {
      throw Errors.unsupported("SET DEFAULT " + change.newDefaultValue() + ": only constants are supported.");
    } else {
      json.set("default", ExpressionJson.of(change.newCurrentDefault().getExpression()));
    }
  }
}
