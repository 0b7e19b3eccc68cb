package tableformat.spark;

/** In this version, Spark does not pass statements to catalogs. A commit does not know which rows its statement read (ST-7). */
interface Transactions {
  boolean ARE_KNOWN = false;
}
