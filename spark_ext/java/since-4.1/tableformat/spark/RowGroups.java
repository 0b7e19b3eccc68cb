package tableformat.spark;

import org.apache.parquet.hadoop.ParquetWriter;

/** How many rows a row group has. */
final class RowGroups {
  private RowGroups() {}

  static <T, B extends ParquetWriter.Builder<T, B>> B limited(B builder, int rowCountLimit) {
    return builder.withRowGroupRowCountLimit(rowCountLimit);
  }
}
