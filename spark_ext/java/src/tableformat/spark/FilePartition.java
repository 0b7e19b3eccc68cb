package tableformat.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;

/** The files that one Spark task reads. `partitionKey` is the partition of all files if the scan reports its partitioning; else null. */
record FilePartition(FileTask[] files, InternalRow partitionKey) implements HasPartitionKey {}
