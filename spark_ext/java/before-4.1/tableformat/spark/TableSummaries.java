package tableformat.spark;

/** LK-2: before 4.1, SHOW TABLES does not load any table. */
interface TableSummaries {}
