package tableformat.spark;

import org.apache.parquet.hadoop.ParquetWriter;

/** The maximum number of rows in a row group. */
final class RowGroups {
  private RowGroups() {}

  static <T, B extends ParquetWriter.Builder<T, B>> B limited(B builder, int rowCountLimit) {
    return builder.withRowGroupRowCountLimit(rowCountLimit);
  }
}
