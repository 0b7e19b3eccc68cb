package tableformat.spark;

import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Serialized and sent to the executors, where it reads files. */
final class LakeReaderFactory implements PartitionReaderFactory {
  /** Output columns, including metadata columns. */
  final StructType output;

  /** For each output column the name of the metadata column; null for a column of the table (SP-87). */
  final String[] metadata;

  /** One Parquet reader for each layout of the plan's files. All return the same columns in the same order. */
  final ParquetPartitionReaderFactory[] layouts;

  /** For each output column its position in the batch of the Parquet reader; -1 for a column that is in no file. */
  final int[] readPlaces;

  /** For each layout and each output column the position among the constants; -1 if the file has the column. */
  final int[][] constantPlaces;

  /** For each output column of row lineage, the position of the inherited value among the constants; -1 for other columns. */
  final int[] inheritedPlaces;

  /** Deleted positions that are too large to send with the tasks; null if there are none. */
  final Broadcast<byte[][]> sharedDeleted;

  LakeReaderFactory(
      StructType output, String[] metadata, ParquetPartitionReaderFactory[] layouts, int[] readPlaces, int[][] constantPlaces,
      int[] inheritedPlaces, Broadcast<byte[][]> sharedDeleted) {
    this.output = output;
    this.metadata = metadata;
    this.layouts = layouts;
    this.readPlaces = readPlaces;
    this.constantPlaces = constantPlaces;
    this.inheritedPlaces = inheritedPlaces;
    this.sharedDeleted = sharedDeleted;
  }

  @Override public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new LakeReader(this, ((FilePartition) partition).files());
  }

  @Override public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("rows are read in batches");
  }
}
