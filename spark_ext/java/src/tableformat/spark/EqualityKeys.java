package tableformat.spark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * DA-2: the encoded keys of equality delete files in a hash table, each with the newest sequence number that deletes it.
 *
 * <p>Most rows are not deleted. A filter of a few bits for each key rules them out, because it fits into the processor's cache and the table
 * does not.
 */
final class EqualityKeys {
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
  private static final long MULTIPLIER = 0x9E3779B97F4A7C15L;
  private static final long TAG = 0xFFFFFFFF00000000L;

  /** The sequence number and the length of a key are before it. */
  private static final int LENGTH = Long.BYTES;

  private static final int HEADER_BYTES = Long.BYTES + Integer.BYTES;
  private static final int MAX_BYTES = Integer.MAX_VALUE - 64;
  private static final int SLOTS_PER_WORD = 8;

  /** With more keys the table grows while they are added. */
  private static final int MOST_KEYS = 1 << 22;

  /** The upper half of the hash, and where the key is plus one; 0 in an empty slot. At most half of the slots are taken. */
  private long[] slots;

  /** For each key two bits in a word that its hash chooses. */
  private long[] filter;

  private byte[] keys = new byte[1024];
  private int end = 0;

  /** Keeps the compiler from leaving reads out. */
  private long fetched = 0;

  private int count = 0;

  /** For each column the lowest and highest encoding; null in a table without keys. */
  private final byte[][] lowest;
  private final byte[][] highest;

  /** A table for so many keys, and more. */
  EqualityKeys(int columnCount, long keyCount) {
    slots = new long[Math.max(64, Integer.highestOneBit((int) Math.min(keyCount, MOST_KEYS)) * 4)];
    filter = new long[slots.length / SLOTS_PER_WORD];
    lowest = new byte[columnCount][];
    highest = new byte[columnCount][];
  }

  /** Reads the slots of these hashes side by side, before keys with these hashes are added one by one. */
  void fetch(long[] hashes, int rowCount) {
    long sum = 0;
    for (int row = 0; row < rowCount; row++) {
      sum += slots[first(hashes[row])];
    }
    fetched = sum;
  }

  /** Adds the last row of the encoder, whose hash is given, as deleted by a delete with this sequence number. */
  void add(KeyEncoder row, long hash, long number) {
    for (int i = 0; i < lowest.length; i++) {
      int begin = row.begin(i);
      int stop = row.end(i);
      if (lowest[i] == null || Arrays.compareUnsigned(row.bytes(), begin, stop, lowest[i], 0, lowest[i].length) < 0) {
        lowest[i] = Arrays.copyOfRange(row.bytes(), begin, stop);
      }
      if (highest[i] == null || Arrays.compareUnsigned(row.bytes(), begin, stop, highest[i], 0, highest[i].length) > 0) {
        highest[i] = Arrays.copyOfRange(row.bytes(), begin, stop);
      }
    }
    add(row.bytes(), 0, row.length(), hash, number);
  }

  /** Adds all keys of another table, which has the same columns. */
  void addAll(EqualityKeys other) {
    for (int i = 0; i < lowest.length && other.count > 0; i++) {
      lowest[i] = lowest[i] == null || Arrays.compareUnsigned(other.lowest[i], lowest[i]) < 0 ? other.lowest[i] : lowest[i];
      highest[i] = highest[i] == null || Arrays.compareUnsigned(other.highest[i], highest[i]) > 0 ? other.highest[i] : highest[i];
    }
    for (int at = 0; at < other.end; at += HEADER_BYTES + other.length(at)) {
      int begin = at + HEADER_BYTES;
      add(other.keys, begin, other.length(at), hash(other.keys, begin, other.length(at)), other.number(at));
    }
  }

  private void add(byte[] key, int begin, int length, long hash, long number) {
    if (2 * (count + 1) > slots.length) {
      grow();
    }
    int slot = find(hash, key, begin, length);
    if (slots[slot] != 0) {
      int known = (int) slots[slot] - 1;
      LONGS.set(keys, known, Math.max(number(known), number));
      return;
    }
    int size = HEADER_BYTES + length;
    if ((long) end + size > MAX_BYTES) {
      throw new IllegalStateException(
          "equality deletes have more than " + MAX_BYTES + " bytes of keys for one data file. Convert them: CALL convert_deletes.");
    }
    if (end + size > keys.length) {
      keys = Arrays.copyOf(keys, (int) Math.min(MAX_BYTES, Math.max(2L * keys.length, end + size)));
    }
    LONGS.set(keys, end, number);
    INTS.set(keys, end + LENGTH, length);
    System.arraycopy(key, begin, keys, end + HEADER_BYTES, length);
    put(slot, hash, end);
    end += size;
    count++;
  }

  private void put(int slot, long hash, int at) {
    slots[slot] = hash & TAG | at + 1;
    filter[word(hash)] |= bits(hash);
  }

  private void grow() {
    slots = new long[2 * slots.length];
    filter = new long[slots.length / SLOTS_PER_WORD];
    for (int at = 0; at < end; at += HEADER_BYTES + length(at)) {
      // All keys are different, so the next empty slot is the right one.
      long hash = hash(keys, at + HEADER_BYTES, length(at));
      int slot = first(hash);
      while (slots[slot] != 0) {
        slot = slot + 1 & slots.length - 1;
      }
      put(slot, hash, at);
    }
  }

  /** The hash of the last row of the encoder. */
  static long hash(KeyEncoder row) {
    return hash(row.bytes(), 0, row.length());
  }

  /**
   * Writes the rows whose hash may be that of a key to `rows`, and returns their number. Reads of memory that do not depend on each other
   * run side by side, so a batch takes a fraction of the time that its rows would take one by one. The keys are read for the same reason.
   */
  int candidates(long[] hashes, int rowCount, int[] rows) {
    int found = 0;
    for (int row = 0; row < rowCount; row++) {
      rows[found] = row;
      long bits = bits(hashes[row]);
      found += (filter[word(hashes[row])] & bits) == bits ? 1 : 0;
    }
    int kept = 0;
    long sum = 0;
    for (int i = 0; i < found; i++) {
      rows[kept] = rows[i];
      long slot = slots[first(hashes[rows[i]])];
      if (slot != 0) {
        sum += keys[(int) slot - 1];
        kept++;
      }
    }
    fetched = sum;
    return kept;
  }

  /** Whether a delete that is newer than `dataNumber` has the key of the last row of the encoder, whose hash is given. */
  boolean deletes(KeyEncoder row, long hash, long dataNumber) {
    long slot = slots[find(hash, row.bytes(), 0, row.length())];
    return slot != 0 && number((int) slot - 1) > dataNumber;
  }

  /** The slot of the key, or the empty slot where it would be. */
  private int find(long hash, byte[] key, int begin, int length) {
    int slot = first(hash);
    while (true) {
      long each = slots[slot];
      if (each == 0) {
        return slot;
      }
      if (((each ^ hash) & TAG) == 0) {
        int at = (int) each - 1;
        int from = at + HEADER_BYTES;
        if (length(at) == length && Arrays.equals(keys, from, from + length, key, begin, begin + length)) {
          return slot;
        }
      }
      slot = slot + 1 & slots.length - 1;
    }
  }

  private int length(int at) {
    return (int) INTS.get(keys, at + LENGTH);
  }

  private long number(int at) {
    return (long) LONGS.get(keys, at);
  }

  private int first(long hash) {
    return (int) hash & slots.length - 1;
  }

  private int word(long hash) {
    return (int) (hash >>> 32) & filter.length - 1;
  }

  private static long bits(long hash) {
    return 1L << hash | 1L << (hash >>> 6);
  }

  private static long hash(byte[] key, int begin, int length) {
    long hash = length;
    int stop = begin + length;
    int at = begin;
    for (; at + Long.BYTES <= stop; at += Long.BYTES) {
      hash = mixed(hash ^ (long) LONGS.get(key, at));
    }
    long tail = 0;
    for (; at < stop; at++) {
      tail = tail << 8 | key[at] & 0xFF;
    }
    return mixed(hash ^ tail);
  }

  private static long mixed(long value) {
    long product = (value ^ value >>> 32) * MULTIPLIER;
    return product ^ product >>> 29;
  }

  boolean isEmpty() {
    return count == 0;
  }

  /** Whether a value between the encoded bounds, which may be null, can be in the column of some key. */
  boolean mayMeet(int column, byte[] lower, byte[] upper) {
    return (upper == null || Arrays.compareUnsigned(lowest[column], upper) <= 0)
        && (lower == null || Arrays.compareUnsigned(highest[column], lower) >= 0);
  }

  long sizeBytes() {
    return 8L * (slots.length + filter.length) + keys.length;
  }
}
