package tableformat.spark;

import org.apache.parquet.hadoop.ParquetWriter;

/** The Parquet writer that comes with Spark before 4.1 ends row groups by size in bytes only. */
final class RowGroups {
  private RowGroups() {}

  static <T, B extends ParquetWriter.Builder<T, B>> B limited(B builder, int rowCountLimit) {
    return builder;
  }
}
