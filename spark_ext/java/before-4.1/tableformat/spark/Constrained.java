package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.catalog.Table;

/** Spark has no constraints. */
interface Constrained extends Table {
  /** The table as Python describes it. */
  JsonNode described();
}
