package tableformat.spark;

import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads one file. Spark's reader has an error for columns that a file has narrower than the table (SP-61). */
final class FileReaders {
  private FileReaders() {}

  static PartitionReader<ColumnarBatch> open(ParquetPartitionReaderFactory layout, FileTask task) {
    return new WideningReader(layout, ParquetFiles.file(task));
  }
}
