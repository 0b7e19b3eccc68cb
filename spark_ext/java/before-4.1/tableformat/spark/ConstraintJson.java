package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.TableChange;

/** Spark does not support constraints in this version. */
final class ConstraintJson {
  private ConstraintJson() {}

  static boolean putChange(ObjectNode json, TableChange change) {
    return false;
  }
}
