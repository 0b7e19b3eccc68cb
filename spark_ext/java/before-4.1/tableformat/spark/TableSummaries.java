package tableformat.spark;

/** LK-2: SHOW TABLES of Spark before 4.1 loads no table. */
interface TableSummaries {}
