package tableformat.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;

/** What one Spark task reads. `partitionKey` is the partition that all files lie in, where the scan says so; else null. */
record FilePartition(FileTask[] files, InternalRow partitionKey) implements HasPartitionKey {}
