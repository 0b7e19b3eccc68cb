package tableformat.spark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Sorted disjoint spans in the form of `span_bytes.py`: little-endian, the number of boundaries and whether spans have numbers (32 bits
 * each), the offsets of the boundaries and their end (32 bits each), the sequence numbers of the spans (64 bits each), and the encoded cuts
 * (RD-1). Boundary 2i is the lower cut of span i, boundary 2i + 1 its upper cut.
 */
final class SpanBoundaries {
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final int OFFSETS = 2 * Integer.BYTES;

  private final byte[] encoded;
  private final int low;
  private final int high;
  private final long newerThan;
  private final int numbers;
  private final int cuts;

  /** The spans from `begin` to `end`. If spans have numbers, those apply that exceed `newerThan`. */
  SpanBoundaries(byte[] encoded, int begin, int end, long newerThan) {
    this.encoded = encoded;
    int count = (int) INTS.get(encoded, 0);
    boolean isNumbered = (int) INTS.get(encoded, Integer.BYTES) != 0;
    int afterOffsets = OFFSETS + (count + 1) * Integer.BYTES;
    low = 2 * begin;
    high = 2 * end;
    this.newerThan = newerThan;
    numbers = isNumbered ? afterOffsets : -1;
    cuts = afterOffsets + (isNumbered ? count / 2 * Long.BYTES : 0);
  }

  /** The number of boundaries at or below the key. `guess` is a number that may be the answer, for example that of the row before. */
  int countBelow(byte[] key, int length, int guess) {
    if (guess >= low && guess <= high && (guess == low || isAtOrBelow(guess - 1, key, length))
        && (guess == high || !isAtOrBelow(guess, key, length))) {
      return guess;
    }
    int from = low;
    int to = high;
    while (from < to) {
      int middle = (from + to) >>> 1;
      if (isAtOrBelow(middle, key, length)) {
        from = middle + 1;
      } else {
        to = middle;
      }
    }
    return from;
  }

  private boolean isAtOrBelow(int boundary, byte[] key, int length) {
    int begin = cuts + (int) INTS.get(encoded, OFFSETS + boundary * Integer.BYTES);
    int end = cuts + (int) INTS.get(encoded, OFFSETS + (boundary + 1) * Integer.BYTES);
    return Arrays.compareUnsigned(encoded, begin, end, key, 0, length) <= 0;
  }

  /** RD-2: whether keys with so many boundaries at or below them are in a span that is newer than the file. */
  boolean isDeleted(int count) {
    return (count & 1) == 1
        && (numbers < 0 || (long) LONGS.get(encoded, numbers + (count >> 1) * Long.BYTES) > newerThan);
  }
}
