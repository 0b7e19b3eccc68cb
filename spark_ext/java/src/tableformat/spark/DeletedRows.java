package tableformat.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.roaringbitmap.PeekableIntIterator;
import org.roaringbitmap.RoaringBitmap;

/**
 * The rows of one data file that are deleted by position.
 *
 * <p>The first byte states the encoding. 0 is a 32-bit roaring bitmap in the standard encoding. 1 is a list of runs, each as two 32-bit
 * little-endian integers: the first position and the position after the last.
 */
final class DeletedRows {
  private static final byte ROARING = 0;
  private static final byte RUNS = 1;

  private final PeekableIntIterator positions;

  DeletedRows(byte[] encoded) {
    this(decode(encoded));
  }

  private DeletedRows(RoaringBitmap positions) {
    this.positions = positions.getIntIterator();
  }

  /** The encoded positions, which may be null, and further ones. */
  static DeletedRows of(byte[] encoded, RoaringBitmap others) {
    return new DeletedRows(encoded == null ? others : RoaringBitmap.or(decode(encoded), others));
  }

  private static RoaringBitmap decode(byte[] encoded) {
    ByteBuffer buffer = ByteBuffer.wrap(encoded).order(ByteOrder.LITTLE_ENDIAN);
    byte form = buffer.get();
    RoaringBitmap bitmap = new RoaringBitmap();
    switch (form) {
      case ROARING -> {
        try {
          bitmap.deserialize(buffer);
        } catch (IOException e) {
          throw new UncheckedIOException(e);
        }
      }
      case RUNS -> {
        while (buffer.hasRemaining()) {
          long first = Integer.toUnsignedLong(buffer.getInt());
          bitmap.add(first, Integer.toUnsignedLong(buffer.getInt()));
        }
      }
      default -> throw new IllegalStateException("deleted positions have an unknown format: " + form);
    }
    return bitmap;
  }

  /**
   * Writes the indices of the live rows of the batch, or those of the deleted rows, to `selection`. Returns their number. `rowIndex` has
   * the position of each row in the file, in ascending order, also from batch to batch.
   */
  int select(ColumnVector rowIndex, int rowCount, boolean wantsDeleted, int[] selection) {
    int selected = 0;
    long deleted = seek(rowIndex.getLong(0));
    for (int row = 0; row < rowCount; row++) {
      long position = rowIndex.getLong(row);
      if (deleted < position) {
        deleted = seek(position);
      }
      if ((position == deleted) == wantsDeleted) {
        selection[selected++] = row;
      }
    }
    return selected;
  }

  /** Sets `isDeleted` for the deleted rows of the batch. */
  void mark(ColumnVector rowIndex, int rowCount, boolean[] isDeleted) {
    for (int row = 0; row < rowCount; row++) {
      long position = rowIndex.getLong(row);
      isDeleted[row] |= seek(position) == position;
    }
  }

  /** The first deleted position at or after the given one; Long.MAX_VALUE if there is none. */
  private long seek(long position) {
    if (position > 0xFFFFFFFFL) {
      return Long.MAX_VALUE;
    }
    positions.advanceIfNeeded((int) position);
    return positions.hasNext() ? Integer.toUnsignedLong(positions.peekNext()) : Long.MAX_VALUE;
  }
}
