package tableformat.spark;

import java.io.Serializable;

/** The range and equality deletes of one data file. Its rows are compared with them while they are read (decision 65). */
record KeyDeletes(
    /** DA-2: keys of deletes that are not newer than this sequence number of the file delete no row. */
    long dataNumber,
    /** The number of rows of the file, deleted ones included. */
    long rowCount,
    Spans[] spans,
    /** Indexes of the factory's equality sets. */
    int[] equality)
    implements Serializable {

  /** Spans of one list of delete columns. */
  record Spans(
      /** Positions of the delete columns among the factory's keys. */
      int[] keys,
      /** Encoded spans as `SpanBoundaries` reads them; null if they are shared. */
      byte[] encoded,
      /** Index into the factory's shared parts; -1 if they are not shared. */
      int shared,
      int begin, int end, long newerThan)
      implements Serializable {}

  /** Equality delete files of one set of delete columns. */
  record EqualitySet(
      /** Positions of the delete columns among the factory's keys. */
      int[] keys, DeleteFile[] files)
      implements Serializable {}

  /** An equality delete file, as its manifest entry describes it. */
  record DeleteFile(String path, long size, long number, long rowCount) implements Serializable {}
}
