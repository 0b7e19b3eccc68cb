package tableformat.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Writes the rows of one task into data files. Each file has one partition and one place among the range partitions (RP-7), and is not much
 * larger than the target size.
 */
final class DataFiles {
  /** The number of rows between two checks of the size of the open file. */
  private static final int SIZE_CHECK_ROWS = 1000;

  private final WritePlan plan;
  private final Configuration configuration;
  private final String stem;
  private final List<NewDataFile> finished = new ArrayList<>();
  private DataFileWriter open;
  private Object[] partition;
  private RangePlaces.Place place;
  private long rowCount;

  /** A data file and the partition of all its rows. */
  record NewDataFile(DataFileWriter.Finished file, Object[] partition) {}

  /** `taskName` must be unique among tasks. */
  DataFiles(WritePlan plan, Configuration configuration, int taskNumber, String taskName) {
    this.plan = plan;
    this.configuration = configuration;
    this.stem = plan.stems[taskNumber % plan.stems.length] + "-" + taskName;
  }

  /** The common prefix of the names of the task's files. */
  String stem() {
    return stem;
  }

  void write(InternalRow row) throws IOException {
    Object[] values = new Object[plan.partition.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = plan.partition[i].value(row);
    }
    RangePlaces.Place at = plan.ranges == null ? RangePlaces.ANY : plan.ranges.place(row);
    if (open != null && !(at.equals(place) && Arrays.deepEquals(values, partition))) {
      close();
    }
    if (open == null) {
      for (int i = 0; i < values.length; i++) {
        values[i] = PartitionField.owned(values[i]);
      }
      partition = values;
      place = at;
      rowCount = 0;
      open = new DataFileWriter(
          stem + "-" + String.format("%05d", finished.size()) + ".parquet", plan, configuration);
    }
    open.write(row);
    if (++rowCount % SIZE_CHECK_ROWS == 0 && open.sizeBytes() >= plan.targetFileSizeBytes) {
      close();
    }
  }

  /** The partition and place of a row. Rows that are sorted by key are adjacent within one home. */
  record Home(List<Object> partition, RangePlaces.Place place) {}

  /** The home of the row. Its values are copies that outlive the row. */
  Home home(InternalRow row) {
    List<Object> values = new ArrayList<>();
    for (PartitionField field : plan.partition) {
      values.add(PartitionField.owned(field.value(row)));
    }
    return new Home(values, plan.ranges == null ? RangePlaces.ANY : plan.ranges.place(row));
  }

  /** The number of the file to which the last row was written. */
  int number() {
    return open == null ? finished.size() - 1 : finished.size();
  }

  /** Closes the open file. */
  List<NewDataFile> finish() throws IOException {
    close();
    return finished;
  }

  private void close() throws IOException {
    if (open != null) {
      finished.add(new NewDataFile(open.finish(), partition));
      open = null;
    }
  }

  /** Removes every file. */
  void abort() throws IOException {
    if (open != null) {
      open.abandon();
      open = null;
    }
    for (NewDataFile file : finished) {
      DataFileWriter.delete(file.file().location(), configuration);
    }
    finished.clear();
  }
}
