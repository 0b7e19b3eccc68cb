package tableformat.spark;

/** What Spark does with the ids of rows (format version 3) in UPDATE and MERGE: the rows that Spark inserts come without ids, and updated ones with them. */
final class RowIds {
  static final boolean ARE_GIVEN_TO_REINSERTED_ROWS = false;

  private RowIds() {}
}
