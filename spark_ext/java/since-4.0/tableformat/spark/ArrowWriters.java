package tableformat.spark;

import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;

/** Writes Spark rows into Arrow columns. */
final class ArrowWriters {
  private ArrowWriters() {}

  static ArrowWriter of(StructType schema) {
    return ArrowWriter.create(schema, "UTC", false, false);
  }
}
