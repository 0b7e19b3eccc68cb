package tableformat.spark;

/** How Spark handles row ids (format version 3) in UPDATE and MERGE: rows that Spark inserts have no ids, updated rows have them. */
final class RowIds {
  static final boolean ARE_GIVEN_TO_REINSERTED_ROWS = false;

  private RowIds() {}
}
