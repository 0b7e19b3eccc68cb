package tableformat.spark;

/** Spark has no statements for views of catalogs. */
interface Views {}
