package tableformat.spark;

/** Spark has no catalogs with procedures: SqlCalls has CALL. */
interface Procedures {}
