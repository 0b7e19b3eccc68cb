package tableformat.spark;

/** Spark has no CALL. */
interface Procedures {}
