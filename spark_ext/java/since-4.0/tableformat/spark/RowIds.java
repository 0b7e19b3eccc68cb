package tableformat.spark;

/** How Spark handles row ids (format version 3) in UPDATE and MERGE: an updated row is deleted and inserted again with its id. */
final class RowIds {
  static final boolean ARE_GIVEN_TO_REINSERTED_ROWS = true;

  private RowIds() {}
}
