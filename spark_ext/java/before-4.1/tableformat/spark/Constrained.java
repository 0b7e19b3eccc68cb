package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.catalog.Table;

/** Spark does not support constraints in this version. */
interface Constrained extends Table {
  /** Python's description of the table. */
  JsonNode described();
}
