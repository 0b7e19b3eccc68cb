package tableformat.spark;

import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Travels to the executors and reads files there. */
final class LakeReaderFactory implements PartitionReaderFactory {
  /** Columns that come out, metadata columns among them. */
  final StructType output;

  /** For each of them its name where it is a metadata column; null for one of the table (SP-87). */
  final String[] metadata;

  /** One Parquet reader for each way that the plan's files are laid out; all give the same columns in the same order. */
  final ParquetPartitionReaderFactory[] layouts;

  /** For each output column its place in the Parquet reader's batch; -1 for one that no file has. */
  final int[] readPlaces;

  /** For each layout, for each output column: its place among the constants, or -1 when the file has it. */
  final int[][] constantPlaces;

  /** For each output column: for one of row lineage, the place among the constants of what rows inherit; else -1. */
  final int[] inheritedPlaces;

  /** Deleted positions that are too large to travel with the tasks; null when there are none. */
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
