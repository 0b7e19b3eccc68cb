package tableformat.spark;

import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;

/** Spark's rows into Arrow's columns. */
final class ArrowWriters {
  private ArrowWriters() {}

  static ArrowWriter of(StructType schema) {
    return ArrowWriter.create(schema, "UTC", false);
  }
}
