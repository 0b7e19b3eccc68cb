package tableformat.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;

/** A contiguous range of bytes of one data file, and the deleted rows of the file. */
record FileTask(
    /** Location as spelled in the table's metadata; also the value of `_file`. */
    String path,
    long start,
    long length,
    long fileSize,
    /** Index of the factory's layout that the file is read with. */
    int layout,
    /** Values of columns that are the same in every row of the file; null if there are no such columns. */
    InternalRow constants,
    /** Deleted positions as `DeletedRows` decodes them; null if there are none or if they are shared. */
    byte[] deleted,
    /** Index into the factory's shared positions; -1 if they are not shared. */
    int sharedDeleted,
    /** Whether only the deleted rows are read, as for a feed of changes. */
    boolean readsDeleted,
    /** Deletes that are compared with the rows; null if there are none. */
    KeyDeletes keyDeletes)
    implements Serializable {

  /** All rows of a file that is not a data file of the table. */
  static FileTask whole(String path, long size) {
    return new FileTask(path, 0, size, size, 0, null, null, -1, false, null);
  }

  FileTask stretch(long from, long size) {
    return new FileTask(path, from, size, fileSize, layout, constants, deleted, sharedDeleted, readsDeleted, keyDeletes);
  }
}
