package tableformat.spark;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.rdd.InputFileBlockHolder;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import org.roaringbitmap.RoaringBitmap;

/** Batches of Spark's Parquet reader without the deleted rows. If `_deleted` is selected, deleted rows are included and marked. */
final class LakeReader implements PartitionReader<ColumnarBatch> {
  private static final int NOT_READ = -1;

  private final LakeReaderFactory factory;
  private final FileTask[] tasks;
  /** Names of metadata columns; null for columns of the table. */
  private final String[] names;
  /** For each output column its position in the batch of the Parquet reader; NOT_READ for columns that are in no file. */
  private final int[] places;
  private final boolean[] uuids;
  private final int rowIndexPlace;
  private final boolean showsDeleted;
  private int[] selection = new int[0];
  private boolean[] isDeleted = new boolean[0];

  private int next = 0;
  private FileTask task;
  private PartitionReader<ColumnarBatch> reader;
  private DeletedRows deleted;
  /** Compares rows with the task's range and equality deletes; null if it has none. */
  private KeyMatcher matcher;
  /** The parts of the task that are not read yet. */
  private final ArrayDeque<RowGroupParts.Part> parts = new ArrayDeque<>();
  private RowGroupParts.Part part;
  private ColumnarBatch batch;

  LakeReader(LakeReaderFactory factory, FileTask[] tasks) {
    this.factory = factory;
    this.tasks = tasks;
    StructType read = factory.layouts[0].readDataSchema();
    List<String> readNames = List.of(read.fieldNames());
    names = factory.metadata;
    places = new int[names.length];
    uuids = new boolean[names.length];
    rowIndexPlace = readNames.indexOf(ParquetFiles.rowIndexColumn().name());
    for (int i = 0; i < names.length; i++) {
      places[i] = MetadataColumns.POSITION.equals(names[i]) ? rowIndexPlace : factory.readPlaces[i];
      uuids[i] = factory.readPlaces[i] != NOT_READ && Schemas.isUuid(read.apply(places[i]));
    }
    int mark = Arrays.asList(names).indexOf(MetadataColumns.DELETED);
    showsDeleted = mark >= 0 && factory.constantPlaces[0][mark] == NOT_READ;
  }

  @Override public boolean next() throws IOException {
    while (reader != null || openNext()) {
      if (reader.next()) {
        batch = selected(reader.get());
        if (batch.numRows() > 0) {
          return true;
        }
      } else {
        reader.close();
        reader = null;
        if (matcher != null && parts.isEmpty()) {
          matcher.finish();
        }
      }
    }
    return false;
  }

  @Override public ColumnarBatch get() {
    return batch;
  }

  @Override public void close() throws IOException {
    InputFileBlockHolder.unset();
    if (reader != null) {
      reader.close();
      reader = null;
    }
  }

  private boolean openNext() throws IOException {
    // A range of bytes in which no row group begins has no parts.
    while (parts.isEmpty()) {
      if (next == tasks.length) {
        return false;
      }
      openTask(tasks[next++]);
    }
    part = parts.remove();
    ParquetPartitionReaderFactory[] layouts = part.isCompared() ? factory.layoutsWithKeys : factory.layouts;
    reader = FileReaders.open(layouts[task.layout()], part.task());
    return true;
  }

  private void openTask(FileTask opened) throws IOException {
    task = opened;
    byte[] encoded = task.sharedDeleted() < 0 ? task.deleted() : factory.shared.value()[task.sharedDeleted()];
    deleted = encoded == null ? null : new DeletedRows(encoded);
    matcher = null;
    if (task.keyDeletes() != null) {
      KnownPositions.Identity identity = KnownPositions.identity(task, factory.keys, factory.equalitySets);
      RoaringBitmap known = identity == null ? null : KnownPositions.of(identity);
      matcher = known == null ? new KeyMatcher(factory, task, identity) : null;
      deleted = known == null ? deleted : DeletedRows.of(encoded, known);
    }
    parts.addAll(matcher == null ? List.of(RowGroupParts.Part.whole(task, false)) : matcher.parts());
    // The values of input_file_name() and similar functions in the reading thread.
    InputFileBlockHolder.set(task.path(), task.start(), task.length());
  }

  /** The requested rows: the live rows, all rows if deleted rows are marked, or the deleted rows for a feed of changes. */
  private ColumnarBatch selected(ColumnarBatch read) {
    int rowCount = read.numRows();
    checkRows(read);
    if (rowCount == 0 || showsDeleted || (deleted == null && !part.isCompared())) {
      return output(read, rowCount, false);
    }
    if (selection.length < rowCount) {
      selection = new int[rowCount];
    }
    int count = 0;
    if (part.isCompared()) {
      mark(read, rowCount);
      for (int row = 0; row < rowCount; row++) {
        if (isDeleted[row] == task.readsDeleted()) {
          selection[count++] = row;
        }
      }
    } else {
      count = deleted.select(read.column(rowIndexPlace), rowCount, task.readsDeleted(), selection);
    }
    return output(read, count, count < rowCount);
  }

  /** Statistics decided for the row groups of the part. Raises an error if the reader found rows of another row group in it. */
  private void checkRows(ColumnarBatch read) {
    if (part.endRow() == Long.MAX_VALUE || read.numRows() == 0) {
      return;
    }
    long first = read.column(rowIndexPlace).getLong(0);
    long last = read.column(rowIndexPlace).getLong(read.numRows() - 1);
    if (first < part.firstRow() || last >= part.endRow()) {
      throw new IllegalStateException(
          task.path() + ": the rows from " + first + " to " + last + " are not in the row groups that its footer places there.");
    }
  }

  /** Sets for each row of the batch whether it is deleted. */
  private void mark(ColumnarBatch read, int rowCount) {
    if (isDeleted.length < rowCount) {
      isDeleted = new boolean[rowCount];
    }
    Arrays.fill(isDeleted, 0, rowCount, false);
    if (part.isCompared()) {
      matcher.mark(read, read.column(rowIndexPlace), rowCount, isDeleted);
    }
    if (deleted != null) {
      deleted.mark(read.column(rowIndexPlace), rowCount, isDeleted);
    }
  }

  private ColumnarBatch output(ColumnarBatch read, int rowCount, boolean isSelected) {
    int[] constantPlaces = factory.constantPlaces[task.layout()];
    ColumnVector[] columns = new ColumnVector[names.length];
    for (int i = 0; i < columns.length; i++) {
      if (constantPlaces[i] != NOT_READ) {
        DataType type = factory.output.apply(i).dataType();
        columns[i] = Constants.vector(type, Constants.value(task.constants(), constantPlaces[i], type), rowCount);
      } else if (places[i] == NOT_READ) {
        columns[i] = metadataColumn(names[i], read, rowCount);
      } else {
        ColumnVector column = read.column(places[i]);
        column = uuids[i] ? new UuidVector(column) : column;
        column = factory.inheritedPlaces[i] == NOT_READ ? column : inherited(i, column, read);
        columns[i] = isSelected ? new SelectedVector(column, selection) : column;
      }
    }
    return new ColumnarBatch(columns, rowCount);
  }

  /**
   * A row without a stored row id gets the first row id of the file plus its position. A row without a sequence number gets that of the
   * file.
   */
  private ColumnVector inherited(int column, ColumnVector stored, ColumnarBatch read) {
    int place = factory.inheritedPlaces[column];
    if (task.constants().isNullAt(place)) {
      return Constants.vector(DataTypes.LongType, null, read.numRows());
    }
    long base = task.constants().getLong(place);
    ColumnVector positions = MetadataColumns.ROW_ID.equals(names[column]) ? read.column(rowIndexPlace) : null;
    OnHeapColumnVector values = new OnHeapColumnVector(read.numRows(), DataTypes.LongType);
    for (int row = 0; row < read.numRows(); row++) {
      values.putLong(row, !stored.isNullAt(row) ? stored.getLong(row)
          : positions == null ? base : base + positions.getLong(row));
    }
    return values;
  }

  private ColumnVector metadataColumn(String name, ColumnarBatch read, int rowCount) {
    return switch (name) {
      case MetadataColumns.FILE -> Constants.vector(DataTypes.StringType, UTF8String.fromString(task.path()), rowCount);
      case MetadataColumns.DELETED -> deletedColumn(read, rowCount);
      default -> throw new IllegalStateException("the plan has no values for " + name);
    };
  }

  private ColumnVector deletedColumn(ColumnarBatch read, int rowCount) {
    if (deleted == null && !part.isCompared()) {
      return Constants.vector(DataTypes.BooleanType, false, rowCount);
    }
    mark(read, rowCount);
    OnHeapColumnVector column = new OnHeapColumnVector(rowCount, DataTypes.BooleanType);
    for (int row = 0; row < rowCount; row++) {
      column.putBoolean(row, isDeleted[row]);
    }
    return column;
  }
}
