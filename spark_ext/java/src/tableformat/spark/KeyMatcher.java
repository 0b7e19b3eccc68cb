package tableformat.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.roaringbitmap.RoaringBitmap;

/** Compares the rows of one data file with its range and equality deletes. */
final class KeyMatcher {
  /** Footers of smaller files are not read: comparing their rows takes less. */
  private static final long SMALL_FILE_BYTES = 128 << 10;

  /** Positions from here on are not kept. */
  private static final long POSITIONS_END = 1L << 32;

  private final LakeReaderFactory factory;
  private final FileTask task;
  private final SpanMatcher[] spans;
  private final EqualityMatcher[] equality;

  /** Null if the positions that are found are not kept. */
  private final KnownPositions.Identity identity;

  private final RoaringBitmap found = new RoaringBitmap();

  /** The number of rows that have to be compared, less those that were. Filters skip rows, which are then not compared. */
  private long missingCount;

  KeyMatcher(LakeReaderFactory factory, FileTask task, KnownPositions.Identity identity) throws IOException {
    this.factory = factory;
    this.task = task;
    this.identity = identity;
    KeyDeletes deletes = task.keyDeletes();
    spans = new SpanMatcher[deletes.spans().length];
    for (int i = 0; i < spans.length; i++) {
      spans[i] = new SpanMatcher(deletes.spans()[i]);
    }
    equality = new EqualityMatcher[deletes.equality().length];
    for (int i = 0; i < equality.length; i++) {
      equality[i] = new EqualityMatcher(deletes.equality()[i], deletes.dataNumber());
    }
  }

  /** The parts of the file, with those marked whose rows have to be compared. */
  List<RowGroupParts.Part> parts() throws IOException {
    if (task.fileSize() < SMALL_FILE_BYTES) {
      missingCount = task.length() == task.fileSize() ? task.keyDeletes().rowCount() : Long.MAX_VALUE;
      return List.of(RowGroupParts.Part.whole(task, true));
    }
    RowGroupParts groups = RowGroupParts.of(task, factory.layouts[task.layout()].broadcastedConf().value().value());
    long[] sortedBy = groups.sortedBy();
    for (SpanMatcher each : spans) {
      each.isSorted = startsWith(sortedBy, each.encoder.keys());
    }
    List<RowGroupParts.Part> parts = groups.parts(factory.keys, bounds ->
        Arrays.stream(spans).anyMatch(each -> each.mayReach(bounds))
            || Arrays.stream(equality).anyMatch(each -> each.mayReach(bounds)));
    missingCount = parts.stream().filter(RowGroupParts.Part::isCompared).mapToLong(part -> part.endRow() - part.firstRow()).sum();
    return parts;
  }

  /** All parts were read. */
  void finish() {
    if (identity != null && missingCount == 0 && task.keyDeletes().rowCount() <= POSITIONS_END) {
      KnownPositions.keep(identity, found);
    }
  }

  private static boolean startsWith(long[] fieldIds, KeyEncoder.Key[] keys) {
    for (int i = 0; i < keys.length; i++) {
      if (i >= fieldIds.length || fieldIds[i] != keys[i].fieldId()) {
        return false;
      }
    }
    return true;
  }

  /** Sets `isDeleted`, which is false before, for the rows of a batch that a delete reaches. `rowIndex` has their positions. */
  void mark(ColumnarBatch batch, ColumnVector rowIndex, int rowCount, boolean[] isDeleted) {
    for (SpanMatcher each : spans) {
      each.mark(batch, rowCount, isDeleted);
    }
    for (EqualityMatcher each : equality) {
      each.mark(batch, rowCount, isDeleted);
    }
    missingCount -= rowCount;
    for (int row = 0; identity != null && row < rowCount; row++) {
      if (isDeleted[row]) {
        found.add((int) rowIndex.getLong(row));
      }
    }
  }

  private KeyEncoder.Key[] keys(int[] places) {
    return Arrays.stream(places).mapToObj(place -> factory.keys[place]).toArray(KeyEncoder.Key[]::new);
  }

  private ColumnVector[] columns(ColumnarBatch batch, int[] places) {
    return Arrays.stream(places).mapToObj(place -> batch.column(factory.keyPlaces[place])).toArray(ColumnVector[]::new);
  }

  /** Range deletes of one list of columns. */
  private final class SpanMatcher {
    private final int[] places;
    private final KeyEncoder encoder;
    private final SpanBoundaries boundaries;
    private boolean isSorted = false;
    private int last = -1;

    SpanMatcher(KeyDeletes.Spans spans) {
      places = spans.keys();
      encoder = new KeyEncoder(keys(places));
      byte[] encoded = spans.shared() < 0 ? spans.encoded() : factory.shared.value()[spans.shared()];
      boundaries = new SpanBoundaries(encoded, spans.begin(), spans.end(), spans.newerThan());
    }

    boolean mayReach(RowGroupParts.Bounds bounds) {
      byte[] lower = bounds.lowerCut(places);
      byte[] upper = bounds.upperCut(places);
      int below = boundaries.countBelow(lower, lower.length, -1);
      return below != boundaries.countBelow(upper, upper.length, below) || boundaries.isDeleted(below);
    }

    void mark(ColumnarBatch batch, int rowCount, boolean[] isDeleted) {
      ColumnVector[] columns = columns(batch, places);
      if (isSorted) {
        markBetween(columns, 0, count(columns, 0), rowCount - 1, count(columns, rowCount - 1), isDeleted);
        return;
      }
      for (int row = 0; row < rowCount; row++) {
        if (boundaries.isDeleted(count(columns, row))) {
          isDeleted[row] = true;
        }
      }
    }

    /** RD-11: the rows from `from` to `to`, which have so many boundaries below them. Rows between two alike are alike, too. */
    private void markBetween(ColumnVector[] columns, int from, int below, int to, int belowTo, boolean[] isDeleted) {
      if (below == belowTo) {
        if (boundaries.isDeleted(below)) {
          Arrays.fill(isDeleted, from, to + 1, true);
        }
      } else if (to - from == 1) {
        isDeleted[from] |= boundaries.isDeleted(below);
        isDeleted[to] |= boundaries.isDeleted(belowTo);
      } else {
        int middle = (from + to) >>> 1;
        int belowMiddle = count(columns, middle);
        markBetween(columns, from, below, middle, belowMiddle, isDeleted);
        markBetween(columns, middle, belowMiddle, to, belowTo, isDeleted);
      }
    }

    private int count(ColumnVector[] columns, int row) {
      encoder.encode(columns, row);
      last = boundaries.countBelow(encoder.bytes(), encoder.length(), last);
      return last;
    }
  }

  /** Equality deletes of one set of columns. */
  private final class EqualityMatcher {
    private final int[] places;
    private final KeyEncoder encoder;
    private final EqualityKeys deleted;
    private final long dataNumber;
    private long[] hashes = new long[0];
    private int[] rows = new int[0];

    EqualityMatcher(int set, long dataNumber) throws IOException {
      KeyDeletes.EqualitySet deletes = factory.equalitySets[set];
      places = deletes.keys();
      encoder = new KeyEncoder(keys(places));
      deleted = KeyTables.of(deletes.files(), encoder.keys(), factory.deleteReaders[set]);
      this.dataNumber = dataNumber;
    }

    boolean mayReach(RowGroupParts.Bounds bounds) {
      if (deleted.isEmpty()) {
        return false;
      }
      for (int i = 0; i < places.length; i++) {
        if (!deleted.mayMeet(i, bounds.lower()[places[i]], bounds.upper()[places[i]])) {
          return false;
        }
      }
      return true;
    }

    void mark(ColumnarBatch batch, int rowCount, boolean[] isDeleted) {
      ColumnVector[] columns = columns(batch, places);
      if (hashes.length < rowCount) {
        hashes = new long[rowCount];
        rows = new int[rowCount];
      }
      for (int row = 0; row < rowCount; row++) {
        encoder.encode(columns, row);
        hashes[row] = EqualityKeys.hash(encoder);
      }
      int count = deleted.candidates(hashes, rowCount, rows);
      for (int i = 0; i < count; i++) {
        encoder.encode(columns, rows[i]);
        isDeleted[rows[i]] |= deleted.deletes(encoder, hashes[rows[i]], dataNumber);
      }
    }
  }
}
