package tableformat.spark;

import org.apache.parquet.hadoop.ParquetWriter;

/** FM-27: passes the Bloom filter options to the Parquet writer. */
final class BloomFilters {
  /** The number of candidate filters: from the largest down to a single block, each half the size of the one before. */
  private static final int SIZES = 20;

  private BloomFilters() {}

  static <T, B extends ParquetWriter.Builder<T, B>> B added(B builder, FilterOption[] options) {
    for (FilterOption option : options) {
      builder.withBloomFilterEnabled(option.column(), true)
          .withBloomFilterFPP(option.column(), option.falsePositiveRate())
          .withBloomFilterCandidateNumber(option.column(), SIZES)
          .withAdaptiveBloomFilterEnabled(true)
          .withMaxBloomFilterBytes(option.maxBytes());
      if (option.distinctCount() != null) {
        builder.withBloomFilterNDV(option.column(), Math.min(option.distinctCount(), option.mostValues()));
      }
    }
    return builder;
  }
}
