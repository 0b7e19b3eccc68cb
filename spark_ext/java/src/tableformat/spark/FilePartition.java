package tableformat.spark;

import org.apache.spark.sql.connector.read.InputPartition;

/** What one Spark task reads. */
record FilePartition(FileTask[] files) implements InputPartition {}
