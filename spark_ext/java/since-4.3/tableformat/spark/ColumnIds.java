package tableformat.spark;

import org.apache.spark.sql.types.StructField;

/** Field ids of a table's columns, as Spark knows them. Spark compares them since 4.3. */
final class ColumnIds {
  private ColumnIds() {}

  static StructField with(StructField field, long id) {
    return field.withId(Long.toString(id));
  }
}
