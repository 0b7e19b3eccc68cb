package tableformat.spark;

/** Spark does not tell catalogs of statements: what a statement read is not known when it commits (ST-7). */
interface Transactions {
  boolean ARE_KNOWN = false;
}
