package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.column.statistics.IntStatistics;
import org.apache.parquet.column.statistics.LongStatistics;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimeUnit;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;

/**
 * The row groups of one data file. Statistics decide which of them can have rows that deletes reach; the delete columns of the others are
 * not read.
 */
final class RowGroupParts {
  private static final String SORTED_BY = "tableformat.sorted-by";
  private static final int ENCODING_VERSION = 1;

  private final FileTask task;
  private final ParquetMetadata footer;

  /** A contiguous part of a file. `firstRow` and `endRow` are positions of rows in the file. */
  record Part(FileTask task, boolean isCompared, long firstRow, long endRow) {
    static Part whole(FileTask task, boolean isCompared) {
      return new Part(task, isCompared, 0, Long.MAX_VALUE);
    }
  }

  /** Encoded bounds of delete columns in one row group; null if they are unknown. */
  record Bounds(byte[][] lower, byte[][] upper) {
    /** RD-10: a cut at or below every key of these columns. */
    byte[] lowerCut(int[] keys) {
      return joined(lower, keys);
    }

    /** RD-10: a cut above every key of these columns. */
    byte[] upperCut(int[] keys) {
      return KeyEncoder.after(joined(upper, keys));
    }

    private static byte[] joined(byte[][] pieces, int[] keys) {
      byte[] cut = new byte[0];
      for (int key : keys) {
        byte[] piece = pieces[key];
        if (piece == null) {
          break;
        }
        int length = cut.length;
        cut = Arrays.copyOf(cut, length + piece.length);
        System.arraycopy(piece, 0, cut, length, piece.length);
      }
      return cut;
    }
  }

  /** Decides from bounds whether rows have to be compared. */
  interface Decision {
    boolean isCompared(Bounds bounds);
  }

  private RowGroupParts(FileTask task, ParquetMetadata footer) {
    this.task = task;
    this.footer = footer;
  }

  /** Reads the footer. */
  static RowGroupParts of(FileTask task, Configuration hadoop) throws IOException {
    HadoopInputFile input = HadoopInputFile.fromPath(ParquetFiles.file(task).toPath(), hadoop);
    var options = HadoopReadOptions.builder(hadoop, input.getPath()).withRange(task.start(), task.start() + task.length());
    try (ParquetFileReader reader = ParquetFileReader.open(input, options.build())) {
      return new RowGroupParts(task, reader.getFooter());
    }
  }

  /** RD-11: the field ids by which our marker says that the rows are sorted; empty without a marker of a known encoding. */
  long[] sortedBy() {
    JsonNode promised = promised(footer.getFileMetaData().getKeyValueMetaData().get(SORTED_BY));
    if (promised.path("encoding-version").asInt(-1) != ENCODING_VERSION) {
      return new long[0];
    }
    long[] ids = new long[promised.path("field-ids").size()];
    Arrays.setAll(ids, i -> promised.get("field-ids").get(i).asLong(-1));
    return ids;
  }

  /** A marker that cannot be read promises nothing: rows are then compared one by one, which is right for any order. */
  private static JsonNode promised(String marker) {
    try {
      return marker == null ? Json.object() : Json.parse(marker);
    } catch (UncheckedIOException e) {
      return Json.object();
    }
  }

  /** The parts of the task, in the order of the file. Each row group is in one of them. */
  List<Part> parts(KeyEncoder.Key[] keys, Decision decision) {
    List<Part> parts = new ArrayList<>();
    List<BlockMetaData> blocks = footer.getBlocks();
    String[] columns = Arrays.stream(keys).map(key -> columnOf(key.fieldId())).toArray(String[]::new);
    long end = task.start() + task.length();
    for (int i = 0; i < blocks.size(); i++) {
      BlockMetaData block = blocks.get(i);
      boolean isCompared = decision.isCompared(bounds(keys, columns, block));
      long from = i == 0 ? task.start() : block.getStartingPos();
      long to = i + 1 == blocks.size() ? end : blocks.get(i + 1).getStartingPos();
      long firstRow = block.getRowIndexOffset();
      Part last = parts.isEmpty() ? null : parts.get(parts.size() - 1);
      if (last != null && last.isCompared == isCompared) {
        from = last.task.start();
        firstRow = last.firstRow;
        parts.remove(last);
      }
      parts.add(new Part(task.stretch(from, to - from), isCompared, firstRow, block.getRowIndexOffset() + block.getRowCount()));
    }
    return parts;
  }

  private String columnOf(long fieldId) {
    for (Type type : footer.getFileMetaData().getSchema().getFields()) {
      if (type.getId() != null && type.getId().intValue() == fieldId && type.isPrimitive()) {
        return type.getName();
      }
    }
    return null;
  }

  private static Bounds bounds(KeyEncoder.Key[] keys, String[] columns, BlockMetaData block) {
    byte[][] lower = new byte[keys.length][];
    byte[][] upper = new byte[keys.length][];
    for (ColumnChunkMetaData chunk : block.getColumns()) {
      String[] path = chunk.getPath().toArray();
      int key = path.length == 1 ? Arrays.asList(columns).indexOf(path[0]) : -1;
      Statistics<?> statistics = key < 0 ? null : chunk.getStatistics();
      if (statistics != null && statistics.isNumNullsSet()) {
        boolean isNull = statistics.getNumNulls() == chunk.getValueCount();
        boolean isKnown = statistics.hasNonNullValue() && isComparable(chunk.getPrimitiveType(), keys[key].type());
        upper[key] = isNull ? KeyEncoder.ofNull() : isKnown ? encoded(statistics, false) : null;
        lower[key] = statistics.getNumNulls() > 0 ? KeyEncoder.ofNull() : isKnown ? encoded(statistics, true) : null;
      }
    }
    return new Bounds(lower, upper);
  }

  /** Whether values of the file are encoded as they are stored. Others would have to be converted first. */
  private static boolean isComparable(PrimitiveType stored, DataType type) {
    LogicalTypeAnnotation annotation = stored.getLogicalTypeAnnotation();
    if (type.equals(DataTypes.IntegerType) || type.equals(DataTypes.LongType)) {
      return annotation == null || annotation instanceof LogicalTypeAnnotation.IntLogicalTypeAnnotation integer && integer.isSigned();
    }
    if (type.equals(DataTypes.DateType)) {
      return annotation instanceof LogicalTypeAnnotation.DateLogicalTypeAnnotation;
    }
    if (type.equals(DataTypes.TimestampType) || type.equals(DataTypes.TimestampNTZType)) {
      return annotation instanceof LogicalTypeAnnotation.TimestampLogicalTypeAnnotation timestamp
          && timestamp.getUnit() == TimeUnit.MICROS;
    }
    return type instanceof StringType && annotation instanceof LogicalTypeAnnotation.StringLogicalTypeAnnotation;
  }

  private static byte[] encoded(Statistics<?> statistics, boolean isLower) {
    if (statistics instanceof IntStatistics ints) {
      return KeyEncoder.ofLong(isLower ? ints.getMin() : ints.getMax());
    }
    if (statistics instanceof LongStatistics longs) {
      return KeyEncoder.ofLong(isLower ? longs.getMin() : longs.getMax());
    }
    return KeyEncoder.ofBytes(isLower ? statistics.getMinBytes() : statistics.getMaxBytes());
  }
}
