package tableformat.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.roaringbitmap.RoaringBitmap;

/**
 * The rows that range and equality deletes reach, as earlier tasks of this executor found them. A later read of the same part of a file
 * compares no keys. The positions are kept up to a thirty-second of the executor's heap; the ones that were not used for the longest time
 * are dropped first.
 */
final class KnownPositions {
  private static final long MAX_BYTES = Runtime.getRuntime().maxMemory() / 32;
  private static final long ENTRY_BYTES = 1000;
  private static final long DELETE_FILE_BYTES = 300;
  private static final Map<Identity, RoaringBitmap> HELD = new LinkedHashMap<>(16, 0.75f, true);
  private static long sizeBytes = 0;

  private KnownPositions() {}

  /** What the positions depend on. Files never change (FM-1). */
  record Identity(String path, long start, long length, long dataNumber, List<Object> deletes, long sizeBytes) {}

  /** Null if the deletes are too many to be compared with those of another read. */
  static Identity identity(FileTask task, KeyEncoder.Key[] keys, KeyDeletes.EqualitySet[] sets) {
    KeyDeletes deletes = task.keyDeletes();
    List<Object> parts = new ArrayList<>();
    long sizeBytes = ENTRY_BYTES;
    for (KeyDeletes.Spans spans : deletes.spans()) {
      if (spans.encoded() == null) {
        return null;
      }
      parts.addAll(List.of(
          ByteBuffer.wrap(spans.encoded()), spans.begin(), spans.end(), spans.newerThan(), columns(spans.keys(), keys)));
      sizeBytes += spans.encoded().length;
    }
    for (int set : deletes.equality()) {
      parts.addAll(List.of(List.of(sets[set].files()), columns(sets[set].keys(), keys)));
      sizeBytes += DELETE_FILE_BYTES * sets[set].files().length;
    }
    return new Identity(task.path(), task.start(), task.length(), deletes.dataNumber(), parts, sizeBytes);
  }

  private static List<KeyEncoder.Key> columns(int[] places, KeyEncoder.Key[] keys) {
    return Arrays.stream(places).mapToObj(place -> keys[place]).toList();
  }

  /** Null if they are not known. The positions must not be changed. */
  static synchronized RoaringBitmap of(Identity identity) {
    return HELD.get(identity);
  }

  static synchronized void keep(Identity identity, RoaringBitmap positions) {
    positions.runOptimize();
    RoaringBitmap before = HELD.put(identity, positions);
    sizeBytes += identity.sizeBytes() + positions.getLongSizeInBytes();
    sizeBytes -= before == null ? 0 : identity.sizeBytes() + before.getLongSizeInBytes();
    for (Iterator<Map.Entry<Identity, RoaringBitmap>> eldest = HELD.entrySet().iterator(); sizeBytes > MAX_BYTES;) {
      Map.Entry<Identity, RoaringBitmap> dropped = eldest.next();
      sizeBytes -= dropped.getKey().sizeBytes() + dropped.getValue().getLongSizeInBytes();
      eldest.remove();
    }
  }
}
