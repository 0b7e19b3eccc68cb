package tableformat.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOptions;
import org.apache.spark.sql.execution.datasources.parquet.ParquetUtils$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.SerializableConfiguration;

/** Configures Spark's Parquet writer. Apart from `DataFileSupport`, this is the only class that uses its private classes. */
final class ParquetOutput {
  private static final String REBASE_MODE = "spark.sql.parquet.datetimeRebaseModeInWrite";

  /** Settings of the task that writers read. */
  static final Map<String, String> CALENDAR = Map.of(REBASE_MODE, "CORRECTED");

  private ParquetOutput() {}

  /** The configuration of writers. Overrides settings of the session that must not apply to files of a table. */
  static Broadcast<SerializableConfiguration> configuration(WritePlan plan) {
    var spark = Sessions.active();
    SQLConf session = spark.sessionState().conf();
    if (session.getConfString(REBASE_MODE, "CORRECTED").equalsIgnoreCase("LEGACY")) {
      throw Errors.unsupported(
          REBASE_MODE + "=LEGACY writes dates in the Julian calendar, which tables do not support. Set it to CORRECTED.");
    }
    Configuration hadoop = spark.sessionState().newHadoopConf();
    TableFileSystem.set(hadoop, plan.s3);
    if (plan.level != null) {
      hadoop.set("parquet.compression.codec.zstd.level", plan.level);
    }
    try {
      Job job = Job.getInstance(hadoop);
      ParquetOptions options = new ParquetOptions(Scala.map(Map.<String, String>of()), session);
      ParquetUtils$.MODULE$.prepareWrite(session, job, plan.stored, options);
      // `prepareWrite` takes these from the session.
      Configuration prepared = job.getConfiguration();
      prepared.setBoolean(SQLConf.PARQUET_WRITE_LEGACY_FORMAT().key(), false);
      prepared.set(SQLConf.PARQUET_OUTPUT_TIMESTAMP_TYPE().key(), "TIMESTAMP_MICROS");
      prepared.setBoolean(SQLConf.PARQUET_FIELD_ID_WRITE_ENABLED().key(), true);
      prepared.setBoolean(SQLConf.LEGACY_PARQUET_NANOS_AS_LONG().key(), false);
      return ParquetFiles.broadcast(prepared);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
