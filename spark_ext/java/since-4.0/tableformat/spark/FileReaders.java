package tableformat.spark;

import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads one file. Spark's reader widens columns whose type in the file is narrower than in the table. */
final class FileReaders {
  private FileReaders() {}

  static PartitionReader<ColumnarBatch> open(ParquetPartitionReaderFactory layout, FileTask task) {
    return layout.buildColumnarReader(ParquetFiles.file(task));
  }
}
