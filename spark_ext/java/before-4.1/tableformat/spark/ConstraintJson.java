package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.TableChange;

/** Spark has no constraints. */
final class ConstraintJson {
  private ConstraintJson() {}

  static boolean putChange(ObjectNode json, TableChange change) {
    return false;
  }
}
