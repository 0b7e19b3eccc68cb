package tableformat.spark;

/** Spark does not have CHANGES in this version. */
interface Changelogs {}
