package tableformat.spark;

import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.types.StructType;

/** Converts a schema to the columns of a table, with their comments, defaults and field ids. */
final class V2Columns {
  private V2Columns() {}

  static Column[] of(StructType schema) {
    return CatalogV2Util.structTypeToV2Columns(schema, true);
  }
}
