package tableformat.spark;

import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOptions;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.Option;

/** Spark's own Parquet reader. Its classes are private to Spark; only this file names them. */
final class ParquetFiles {
  /** SP-49: dates and times of tables use the proleptic Gregorian calendar, regardless of the session's settings for other files. */
  private static final scala.collection.immutable.Map<String, String> CALENDAR =
      Scala.map(Map.of(ParquetOptions.DATETIME_REBASE_MODE(), "CORRECTED", ParquetOptions.INT96_REBASE_MODE(), "CORRECTED"));

  private ParquetFiles() {}

  /** A column with the position of each row in its file, which is also correct if pages were skipped. */
  static StructField rowIndexColumn() {
    return new StructField(
        ParquetFileFormat$.MODULE$.ROW_INDEX_TEMPORARY_COLUMN_NAME(), DataTypes.LongType, true,
        org.apache.spark.sql.types.Metadata.empty());
  }

  /**
   * Reads `columns` of Parquet files. Columns with an id in their metadata are found by id. Row groups and pages that cannot match
   * `filters` are skipped; filters refer to columns by name. If `verifiesChecksums` is set, the checksums of pages are verified. `s3` has
   * options of the table.
   */
  static ParquetPartitionReaderFactory readerFactory(
      StructType columns, Filter[] filters, boolean verifiesChecksums, Map<String, String> s3) {
    var spark = Sessions.active();
    SQLConf conf = inBatches(spark.sessionState().conf());
    Configuration hadoop = spark.sessionState().newHadoopConf();
    TableFileSystem.set(hadoop, s3);
    hadoop.set(ParquetInputFormat.READ_SUPPORT_CLASS, ParquetReadSupport.class.getName());
    hadoop.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA(), columns.json());
    hadoop.set(ParquetWriteSupport.SPARK_ROW_SCHEMA(), columns.json());
    hadoop.set(SQLConf.SESSION_LOCAL_TIMEZONE().key(), conf.sessionLocalTimeZone());
    hadoop.setBoolean(SQLConf.NESTED_SCHEMA_PRUNING_ENABLED().key(), conf.nestedSchemaPruningEnabled());
    // The option of the table can switch verification on but not off. A table's request must not depend on the session.
    hadoop.setBoolean(
        ParquetInputFormat.PAGE_VERIFY_CHECKSUM_ENABLED,
        verifiesChecksums || hadoop.getBoolean(ParquetInputFormat.PAGE_VERIFY_CHECKSUM_ENABLED, false));
    // Names were already resolved by the rules of the session. The reader gets the exact names in the file.
    hadoop.setBoolean(SQLConf.CASE_SENSITIVE().key(), true);
    hadoop.setBoolean(SQLConf.PARQUET_FIELD_ID_READ_ENABLED().key(), true);
    // Spark takes these from the session for files without an exact schema. The schema of a table is exact.
    hadoop.setBoolean(SQLConf.PARQUET_BINARY_AS_STRING().key(), false);
    hadoop.setBoolean(SQLConf.PARQUET_INT96_AS_TIMESTAMP().key(), true);
    hadoop.setBoolean(SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED().key(), true);
    hadoop.setBoolean(SQLConf.LEGACY_PARQUET_NANOS_AS_LONG().key(), false);
    return readerFactory(conf, broadcast(hadoop), columns, filters);
  }

  /** SP-66: the settings of a session, without those that switch off batches. */
  static SQLConf inBatches(SQLConf ofSession) {
    return SessionSettings.with(Map.of(
        SQLConf.PARQUET_VECTORIZED_READER_ENABLED().key(), "true",
        SQLConf.PARQUET_VECTORIZED_READER_NESTED_COLUMN_ENABLED().key(), "true"), ofSession);
  }

  static ParquetPartitionReaderFactory readerFactory(
      SQLConf conf, Broadcast<SerializableConfiguration> shared, StructType columns, Filter[] filters) {
    return new ParquetPartitionReaderFactory(
        conf, shared, columns, columns, new StructType(), filters, Option.empty(), new ParquetOptions(CALENDAR, conf));
  }

  static PartitionedFile file(FileTask task) {
    return new PartitionedFile(
        new GenericInternalRow(0), SparkPath.fromPathString(task.path()), task.start(), task.length(), new String[0], 0,
        task.fileSize(), scala.collection.immutable.Map$.MODULE$.<String, Object>empty());
  }

  static Broadcast<SerializableConfiguration> broadcast(Configuration hadoop) {
    return broadcast(new SerializableConfiguration(hadoop), SerializableConfiguration.class);
  }

  static <T> Broadcast<T> broadcast(T value, Class<T> type) {
    return Sessions.active().sparkContext().broadcast(value, scala.reflect.ClassTag$.MODULE$.apply(type));
  }

  static int defaultParallelism() {
    return Sessions.active().sparkContext().defaultParallelism();
  }
}
