package tableformat.spark;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.SchemaColumnConvertNotSupportedException;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;

/**
 * SP-61: reads the batches of one file. The file may have been written before a column was widened.
 *
 * <p>Before 4.0, Spark's reader raises an error for such a column at the first batch. This reader then opens the file again and reads it
 * with the types from its footer. The values are widened one by one as they are requested.
 */
final class WideningReader implements PartitionReader<ColumnarBatch> {
  private final ParquetPartitionReaderFactory layout;
  private final PartitionedFile file;
  private PartitionReader<ColumnarBatch> reader;
  private boolean hasBatch = false;
  private boolean isWidened = false;

  WideningReader(ParquetPartitionReaderFactory layout, PartitionedFile file) {
    this.layout = layout;
    this.file = file;
    reader = layout.buildColumnarReader(file);
  }

  @Override public boolean next() throws IOException {
    try {
      boolean isThere = reader.next();
      hasBatch |= isThere;
      return isThere;
    } catch (SchemaColumnConvertNotSupportedException refused) {
      openAsStored(refused);
      return reader.next();
    }
  }

  @Override public ColumnarBatch get() {
    ColumnarBatch batch = reader.get();
    if (!isWidened) {
      return batch;
    }
    StructType wanted = layout.readDataSchema();
    ColumnVector[] columns = new ColumnVector[batch.numCols()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = WidenedVector.of(batch.column(i), wanted.apply(i).dataType());
    }
    return new ColumnarBatch(columns, batch.numRows());
  }

  @Override public void close() throws IOException {
    reader.close();
  }

  private void openAsStored(SchemaColumnConvertNotSupportedException refused) throws IOException {
    StructType stored = isWidened || hasBatch ? null : StoredTypes.of(layout.readDataSchema(), footerSchema());
    if (stored == null || stored.equals(layout.readDataSchema())) {
      throw refused;
    }
    reader.close();
    Configuration hadoop = new Configuration(layout.broadcastedConf().value().value());
    hadoop.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA(), stored.json());
    hadoop.set(ParquetWriteSupport.SPARK_ROW_SCHEMA(), stored.json());
    isWidened = true;
    // The configuration of the layout lacks the settings that the reader needs; the task has the settings of the session.
    reader = ParquetFiles.readerFactory(
        ParquetFiles.inBatches(SQLConf.get()), new Here(hadoop), stored, layout.filters()).buildColumnarReader(file);
  }

  private MessageType footerSchema() throws IOException {
    Configuration hadoop = layout.broadcastedConf().value().value();
    try (ParquetFileReader opened = ParquetFileReader.open(HadoopInputFile.fromPath(file.toPath(), hadoop))) {
      return opened.getFileMetaData().getSchema();
    }
  }

  /** A local value that takes the form of a broadcast one. */
  private static final class Here extends Broadcast<SerializableConfiguration> {
    private final SerializableConfiguration configuration;

    Here(Configuration hadoop) {
      super(-1, scala.reflect.ClassTag$.MODULE$.apply(SerializableConfiguration.class));
      configuration = new SerializableConfiguration(hadoop);
    }

    @Override public SerializableConfiguration getValue() {
      return configuration;
    }

    @Override public void doUnpersist(boolean blocking) {}

    @Override public void doDestroy(boolean blocking) {}
  }
}
