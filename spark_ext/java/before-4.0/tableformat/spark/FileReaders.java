package tableformat.spark;

import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads one file. Spark's reader raises an error for columns whose type in the file is narrower than in the table (SP-61). */
final class FileReaders {
  private FileReaders() {}

  static PartitionReader<ColumnarBatch> open(ParquetPartitionReaderFactory layout, FileTask task) {
    return new WideningReader(layout, ParquetFiles.file(task));
  }
}
