package tableformat.spark;

import org.apache.parquet.hadoop.ParquetWriter;

/**
 * FM-27: passes the Bloom filter options to the Parquet writer. The writer that comes with Spark 3.5 cannot fit the size of a filter to its
 * values.
 */
final class BloomFilters {
  private BloomFilters() {}

  static <T, B extends ParquetWriter.Builder<T, B>> B added(B builder, FilterOption[] options) {
    for (FilterOption option : options) {
      long count = option.distinctCount() == null ? option.mostValues() : option.distinctCount();
      builder.withBloomFilterEnabled(option.column(), true)
          .withBloomFilterFPP(option.column(), option.falsePositiveRate())
          .withBloomFilterNDV(option.column(), Math.min(count, option.mostValues()));
    }
    return builder;
  }
}
