package tableformat.spark;

import org.apache.spark.sql.types.StructField;

/** Field ids of a table's columns, as Spark knows them. Spark has no place for them yet. */
final class ColumnIds {
  private ColumnIds() {}

  static StructField with(StructField field, long id) {
    return field;
  }
}
