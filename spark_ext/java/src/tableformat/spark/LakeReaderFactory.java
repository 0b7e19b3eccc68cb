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

  /** Deleted positions and spans that are too large to send with the tasks; null if there are none. */
  final Broadcast<byte[][]> shared;

  /** The delete columns that rows are compared with. */
  final KeyEncoder.Key[] keys;

  /** One reader for each layout that also reads the delete columns; null if no rows are compared. */
  final ParquetPartitionReaderFactory[] layoutsWithKeys;

  /** For each delete column its position in the batch of such a reader. */
  final int[] keyPlaces;

  final KeyDeletes.EqualitySet[] equalitySets;

  /** For each equality set the reader of the delete columns in its delete files. */
  final ParquetPartitionReaderFactory[] deleteReaders;

  LakeReaderFactory(
      StructType output, String[] metadata, ParquetPartitionReaderFactory[] layouts, int[] readPlaces, int[][] constantPlaces,
      int[] inheritedPlaces, Broadcast<byte[][]> shared, KeyEncoder.Key[] keys, ParquetPartitionReaderFactory[] layoutsWithKeys,
      int[] keyPlaces, KeyDeletes.EqualitySet[] equalitySets, ParquetPartitionReaderFactory[] deleteReaders) {
    this.output = output;
    this.metadata = metadata;
    this.layouts = layouts;
    this.readPlaces = readPlaces;
    this.constantPlaces = constantPlaces;
    this.inheritedPlaces = inheritedPlaces;
    this.shared = shared;
    this.keys = keys;
    this.layoutsWithKeys = layoutsWithKeys;
    this.keyPlaces = keyPlaces;
    this.equalitySets = equalitySets;
    this.deleteReaders = deleteReaders;
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
