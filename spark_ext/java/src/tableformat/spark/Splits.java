package tableformat.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.internal.SQLConf;

/** Splits files into Spark tasks, by the sizes that a read requests or that Spark uses for its own files. */
final class Splits {
  private Splits() {}

  static InputPartition[] of(List<FileTask> files) {
    return of(files, 0, 0);
  }

  /** `splitSize` and `fileOpenCost` are sizes in bytes that a read requests, or 0. */
  static InputPartition[] of(List<FileTask> files, long splitSize, long fileOpenCost) {
    SQLConf conf = SQLConf.get();
    long openCost = fileOpenCost > 0 ? fileOpenCost : conf.filesOpenCostInBytes();
    if (splitSize > 0) {
      return packed(stretches(files, splitSize), splitSize, openCost);
    }
    long total = files.stream().mapToLong(file -> file.length() + openCost).sum();
    long perCore = total / Math.max(1, ParquetFiles.defaultParallelism());
    long target = Math.min(conf.filesMaxPartitionBytes(), Math.max(openCost, perCore));
    return packed(stretches(files, target), target, openCost);
  }

  /** The same for each partition separately. */
  static InputPartition[] ofGroups(Map<InternalRow, List<FileTask>> groups, long splitSize, long fileOpenCost) {
    List<InputPartition> partitions = new ArrayList<>();
    groups.forEach((key, files) -> {
      for (InputPartition partition : of(files, splitSize, fileOpenCost)) {
        partitions.add(new FilePartition(((FilePartition) partition).files(), key));
      }
    });
    return partitions.toArray(new InputPartition[0]);
  }

  private static List<FileTask> stretches(List<FileTask> files, long target) {
    List<FileTask> stretches = new ArrayList<>();
    for (FileTask file : files) {
      for (long from = 0; from < file.fileSize(); from += target) {
        stretches.add(file.stretch(from, Math.min(target, file.fileSize() - from)));
      }
    }
    stretches.sort(Comparator.comparingLong(FileTask::length).reversed());
    return stretches;
  }

  private static InputPartition[] packed(List<FileTask> stretches, long target, long openCost) {
    List<InputPartition> partitions = new ArrayList<>();
    List<FileTask> current = new ArrayList<>();
    long size = 0;
    for (FileTask stretch : stretches) {
      if (!current.isEmpty() && size + stretch.length() > target) {
        partitions.add(new FilePartition(current.toArray(new FileTask[0]), null));
        current.clear();
        size = 0;
      }
      current.add(stretch);
      size += stretch.length() + openCost;
    }
    if (!current.isEmpty()) {
      partitions.add(new FilePartition(current.toArray(new FileTask[0]), null));
    }
    return partitions.toArray(new InputPartition[0]);
  }
}
