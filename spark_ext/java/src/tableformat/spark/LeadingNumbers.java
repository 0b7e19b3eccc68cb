package tableformat.spark;

import java.io.Serializable;
import java.util.Arrays;
import java.util.function.Predicate;
import java.util.stream.LongStream;

/**
 * Sorted cuts (RD-1) by their first column, if that is numeric. For nearly every row, this column alone determines the number of cuts
 * below.
 *
 * @param certain for each cut the lowest first number for which every row lies above the cut
 * @param possible for each cut the lowest first number for which some row lies above the cut; the same array if both are equal
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

  /**
   * The first number of the cut, or its successor if `next`. Empty if there is no successor, which can only occur for the last sorted cuts.
   */
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

  /** The number of cuts that lie below a row with this first value; UNDECIDED if it depends on the other columns. */
  int below(long number) {
    int below = count(certain, number);
    return possible == certain || count(possible, number) == below ? below : UNDECIDED;
  }

  /** The number of sorted values that are at most `number`. */
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
