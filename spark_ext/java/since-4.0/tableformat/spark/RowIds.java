package tableformat.spark;

/** What Spark does with the ids of rows (format version 3) in UPDATE and MERGE: an updated row is deleted and inserted anew, with its id. */
final class RowIds {
  static final boolean ARE_GIVEN_TO_REINSERTED_ROWS = true;

  private RowIds() {}
}
