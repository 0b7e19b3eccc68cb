package tableformat.spark;

/** Spark has no CHANGES. */
interface Changelogs {}
