package tableformat.spark;

import org.apache.spark.sql.connector.catalog.Column;

/** Columns whose values Spark would compute. */
final class GeneratedColumns {
  private GeneratedColumns() {}

  static boolean isOne(Column column) {
    return column.generationExpression() != null;
  }
}
