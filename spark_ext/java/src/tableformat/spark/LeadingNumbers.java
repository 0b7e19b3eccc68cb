package tableformat.spark;

import java.io.Serializable;
import java.util.Arrays;
import java.util.function.Predicate;
import java.util.stream.LongStream;

/**
 * Sorted cuts (RD-1) by their first column, one of numbers: for nearly every row it alone tells how many cuts lie below.
 *
 * @param certain for each cut the least number with which every row lies above it
 * @param possible for each cut the least number with which some row lies above it; the same array where both are equal
 */
record LeadingNumbers(long[] certain, long[] possible) implements Serializable {
  static final int UNDECIDED = -1;

  static LeadingNumbers of(RangeCut[] cuts) {
    long[] certain = leastAbove(cuts, cut -> cut.after() || cut.values().length > 1);
    long[] possible = leastAbove(cuts, cut -> cut.after() && cut.values().length == 1);
    return new LeadingNumbers(certain, Arrays.equals(certain, possible) ? certain : possible);
  }

  private static long[] leastAbove(RangeCut[] cuts, Predicate<RangeCut> isNext) {
    return Arrays.stream(cuts).flatMapToLong(cut -> leastAbove(cut, isNext.test(cut))).toArray();
  }

  /** The first number of the cut, or the next one; none where it has no next, which only the last of sorted cuts have. */
  private static LongStream leastAbove(RangeCut cut, boolean next) {
    if (cut.values().length == 0) {
      return cut.after() ? LongStream.empty() : LongStream.of(Long.MIN_VALUE);
    }
    long number = (Long) cut.values()[0];
    if (!next) {
      return LongStream.of(number);
    }
    return number == Long.MAX_VALUE ? LongStream.empty() : LongStream.of(number + 1);
  }

  /** How many of the cuts lie below a row that begins with the number; UNDECIDED where its other columns matter. */
  int below(long number) {
    int below = count(certain, number);
    return possible == certain || count(possible, number) == below ? below : UNDECIDED;
  }

  /** How many of the sorted numbers are at most this one. */
  private static int count(long[] sorted, long number) {
    int from = 0;
    int to = sorted.length;
    while (from < to) {
      int middle = (from + to) >>> 1;
      if (sorted[middle] <= number) {
        from = middle + 1;
      } else {
        to = middle;
      }
    }
    return from;
  }
}
