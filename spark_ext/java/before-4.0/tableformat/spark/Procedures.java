package tableformat.spark;

/** This version of Spark has no procedure catalogs. SqlCalls implements CALL. */
interface Procedures {}
