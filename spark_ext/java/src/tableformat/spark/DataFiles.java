package tableformat.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * The rows of one task into data files, each of one partition, in one place among range partitions (RP-7), and not much
 * larger than the target size.
 */
final class DataFiles {
  /** Rows between two looks at the size of the open file. */
  private static final int SIZE_CHECK_ROWS = 1000;

  private final WritePlan plan;
  private final Configuration configuration;
  private final String stem;
  private final List<NewDataFile> finished = new ArrayList<>();
  private DataFileWriter open;
  private Object[] partition;
  private RangePlaces.Place place;
  private long rowCount;

  /** A data file and the partition that all of its rows are in. */
  record NewDataFile(DataFileWriter.Finished file, Object[] partition) {}

  /** `taskName` is in no other task's use. */
  DataFiles(WritePlan plan, Configuration configuration, int taskNumber, String taskName) {
    this.plan = plan;
    this.configuration = configuration;
    this.stem = plan.stems[taskNumber % plan.stems.length] + "-" + taskName;
  }

  /** How the names of the task's files begin. */
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

  /** The partition and place of a row: rows that are sorted by key follow each other within one. */
  record Home(List<Object> partition, RangePlaces.Place place) {}

  /** Its values are the row's own. */
  Home home(InternalRow row) {
    List<Object> values = new ArrayList<>();
    for (PartitionField field : plan.partition) {
      values.add(PartitionField.owned(field.value(row)));
    }
    return new Home(values, plan.ranges == null ? RangePlaces.ANY : plan.ranges.place(row));
  }

  /** The number of the file that the last row went to. */
  int number() {
    return open == null ? finished.size() - 1 : finished.size();
  }

  /** Ends the open file. */
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
