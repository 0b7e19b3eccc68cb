package tableformat.spark;

import org.apache.spark.sql.types.StructField;

/** Passes the field ids of the columns of a table to Spark, which compares them since 4.3. */
final class ColumnIds {
  private ColumnIds() {}

  static StructField with(StructField field, long id) {
    return field.withId(Long.toString(id));
  }
}
