package tableformat.spark;

import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.unsafe.types.UTF8String;
import org.roaringbitmap.RoaringBitmap;

/** The rows that one task deletes: positions by data file. */
final class DeletedPositions {
  private static final long POSITIONS_END = 1L << 32;

  private final Map<UTF8String, RoaringBitmap> bitmaps = new LinkedHashMap<>();
  private UTF8String lastFile;
  private RoaringBitmap last;

  void add(UTF8String file, long position) {
    if (position >= POSITIONS_END) {
      throw new UnsupportedOperationException(
          file + " has more than " + POSITIONS_END + " rows; later rows cannot be deleted from Spark.");
    }
    if (!file.equals(lastFile)) {
      lastFile = file.clone();
      last = bitmaps.computeIfAbsent(lastFile, name -> new RoaringBitmap());
    }
    last.add((int) position);
  }

  /** The positions of each file in the portable format of roaring bitmaps. */
  Map<String, byte[]> serialized() {
    Map<String, byte[]> result = new LinkedHashMap<>();
    bitmaps.forEach((file, bitmap) -> {
      bitmap.runOptimize();
      ByteBuffer buffer = ByteBuffer.allocate(bitmap.serializedSizeInBytes());
      bitmap.serialize(buffer);
      result.put(file.toString(), buffer.array());
    });
    return result;
  }
}
