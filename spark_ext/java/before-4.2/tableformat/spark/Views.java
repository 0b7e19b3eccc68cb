package tableformat.spark;

/** Spark does not have statements for views of catalogs in this version. */
interface Views {}
