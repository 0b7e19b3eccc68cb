package tableformat.spark;

import org.apache.spark.sql.types.StructField;

/** Passes the field ids of the columns of a table to Spark. Before 4.3, Spark's columns have no ids. */
final class ColumnIds {
  private ColumnIds() {}

  static StructField with(StructField field, long id) {
    return field;
  }
}
