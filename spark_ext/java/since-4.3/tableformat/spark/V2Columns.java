package tableformat.spark;

import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.types.StructType;

/** A schema as a table's columns, with their comments and defaults, and the field ids that it has. */
final class V2Columns {
  private V2Columns() {}

  static Column[] of(StructType schema) {
    return CatalogV2Util.structTypeToV2Columns(schema, true);
  }
}
