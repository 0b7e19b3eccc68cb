package tableformat.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.rdd.InputFileBlockHolder;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

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

  private int next = 0;
  private FileTask task;
  private PartitionReader<ColumnarBatch> reader;
  private DeletedRows deleted;
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

  private boolean openNext() {
    if (next == tasks.length) {
      return false;
    }
    task = tasks[next++];
    byte[] encoded = task.sharedDeleted() < 0 ? task.deleted() : factory.sharedDeleted.value()[task.sharedDeleted()];
    deleted = encoded == null ? null : new DeletedRows(encoded);
    reader = FileReaders.open(factory.layouts[task.layout()], task);
    // The values of input_file_name() and similar functions in the reading thread.
    InputFileBlockHolder.set(task.path(), task.start(), task.length());
    return true;
  }

  /** The requested rows: the live rows, all rows if deleted rows are marked, or the deleted rows for a feed of changes. */
  private ColumnarBatch selected(ColumnarBatch read) {
    int rowCount = read.numRows();
    if (rowCount == 0 || deleted == null || showsDeleted) {
      return output(read, rowCount, false);
    }
    if (selection.length < rowCount) {
      selection = new int[rowCount];
    }
    int count = deleted.select(read.column(rowIndexPlace), rowCount, task.readsDeleted(), selection);
    return output(read, count, count < rowCount);
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
    if (deleted == null) {
      return Constants.vector(DataTypes.BooleanType, false, rowCount);
    }
    boolean[] isDeleted = new boolean[rowCount];
    deleted.mark(read.column(rowIndexPlace), rowCount, isDeleted);
    OnHeapColumnVector column = new OnHeapColumnVector(rowCount, DataTypes.BooleanType);
    for (int row = 0; row < rowCount; row++) {
      column.putBoolean(row, isDeleted[row]);
    }
    return column;
  }
}
