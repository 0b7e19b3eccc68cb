package tableformat.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;

/** A stretch of one data file, and which of the file's rows are deleted. */
record FileTask(
    /** Location as the table's metadata spells it; also the value of `_file`. */
    String path,
    long start,
    long length,
    long fileSize,
    /** Which of the factory's layouts the file is read by. */
    int layout,
    /** Values of columns that are the same in every row of the file; null when there are no such columns. */
    InternalRow constants,
    /** Deleted positions as `DeletedRows` decodes them; null for none, or when they are shared. */
    byte[] deleted,
    /** Index into the factory's shared positions; -1 when they are not shared. */
    int sharedDeleted,
    /** Whether the deleted rows are read and the others left out, as a feed of changes does. */
    boolean readsDeleted)
    implements Serializable {

  FileTask stretch(long from, long size) {
    return new FileTask(path, from, size, fileSize, layout, constants, deleted, sharedDeleted, readsDeleted);
  }
}
