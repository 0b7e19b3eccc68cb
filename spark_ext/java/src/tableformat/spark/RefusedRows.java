package tableformat.spark;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * RP-5: the rows of one task that lie in no existing range. They are counted, and samples are passed to the commit. If refused rows are
 * diverted, they are written to a separate file.
 */
final class RefusedRows implements AutoCloseable {
  private static final int SAMPLES_MAX = 100;

  private final WritePlan plan;
  private final Configuration configuration;
  private final String location;
  private DistinctPrefixes samples;
  private DataFileWriter diverted;
  private long seenCount;
  private long refusedCount;

  /** `stem` is the common prefix of the names of the task's files. */
  RefusedRows(WritePlan plan, Configuration configuration, String stem) {
    this.plan = plan;
    this.configuration = configuration;
    this.location = stem + "-refused.parquet";
  }

  /** Whether the row lies in no existing range, so that it must not be written. */
  boolean refuses(InternalRow row) throws IOException {
    if (plan.ranges == null) {
      return false;
    }
    seenCount++;
    if (plan.ranges.takes(row)) {
      return false;
    }
    add(row);
    return true;
  }

  /** Whether the write fails, so that no further rows need to be written. */
  boolean failsWrite() {
    return refusedCount > 0 && !plan.diverts;
  }

  private void add(InternalRow row) throws IOException {
    if (samples == null) {
      samples = new DistinctPrefixes(plan.schema, plan.ranges.ordinals());
    }
    if (++refusedCount <= SAMPLES_MAX) {
      samples.add(row);
    }
    if (plan.diverts) {
      if (diverted == null) {
        diverted = new DataFileWriter(location, plan, configuration);
      }
      diverted.write(row);
    }
  }

  /** The part of the task report about refused rows. */
  record Report(long seenCount, long refusedCount, byte[] samples, DataFileWriter.Finished file) {}

  /** Null if no row was refused. */
  Report finish() throws IOException {
    return refusedCount == 0 ? null
        : new Report(seenCount, refusedCount, samples.serialized(), diverted == null ? null : diverted.finish());
  }

  void abort() throws IOException {
    if (diverted != null) {
      diverted.abandon();
    }
  }

  @Override public void close() {
    if (samples != null) {
      samples.close();
    }
  }
}
