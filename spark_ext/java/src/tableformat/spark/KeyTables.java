package tableformat.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.apache.parquet.ParquetRuntimeException;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * The keys of equality delete files. Each file is read once for all tasks of an executor. The tables of files, and of lists of files, are
 * kept up to an eighth of the executor's heap; the ones that were not used for the longest time are dropped first.
 */
final class KeyTables {
  private static final long MAX_BYTES = Runtime.getRuntime().maxMemory() / 8;
  private static final Map<Object, FutureTask<EqualityKeys>> TABLES = new LinkedHashMap<>(16, 0.75f, true);

  private KeyTables() {}

  /** What the keys of a list of files depend on. Files never change (FM-1). */
  private record Identity(List<KeyDeletes.DeleteFile> files, StructType columns) {}

  /** The combined keys of the files. `reader` reads their delete columns, which are `keys`. */
  static EqualityKeys of(KeyDeletes.DeleteFile[] files, KeyEncoder.Key[] keys, ParquetPartitionReaderFactory reader)
      throws IOException {
    Identity identity = new Identity(List.of(files), reader.readDataSchema());
    if (files.length == 1) {
      return held(identity, () -> read(files[0], keys, reader));
    }
    return held(identity, () -> {
      EqualityKeys all = new EqualityKeys(keys.length, Arrays.stream(files).mapToLong(KeyDeletes.DeleteFile::rowCount).sum());
      for (KeyDeletes.DeleteFile file : files) {
        all.addAll(of(new KeyDeletes.DeleteFile[] {file}, keys, reader));
      }
      return all;
    });
  }

  /** DA-8: raises an error that names the file if it is missing or damaged. */
  private static EqualityKeys read(KeyDeletes.DeleteFile file, KeyEncoder.Key[] keys, ParquetPartitionReaderFactory layout)
      throws IOException {
    EqualityKeys table = new EqualityKeys(keys.length, file.rowCount());
    long rowCount = 0;
    try (PartitionReader<ColumnarBatch> reader = FileReaders.open(layout, FileTask.whole(file.path(), file.size()))) {
      KeyEncoder encoder = new KeyEncoder(keys);
      ColumnVector[] columns = new ColumnVector[keys.length];
      while (reader.next()) {
        ColumnarBatch batch = reader.get();
        Arrays.setAll(columns, batch::column);
        long[] hashes = new long[batch.numRows()];
        for (int row = 0; row < hashes.length; row++) {
          encoder.encode(columns, row);
          hashes[row] = EqualityKeys.hash(encoder);
        }
        table.fetch(hashes, hashes.length);
        for (int row = 0; row < hashes.length; row++) {
          encoder.encode(columns, row);
          table.add(encoder, hashes[row], file.number());
        }
        rowCount += batch.numRows();
      }
    } catch (ParquetRuntimeException | FileNotFoundException e) {
      throw Errors.corrupt(file.path() + " is missing or damaged: " + e.getMessage(), e);
    } catch (IOException e) {
      throw new IOException(file.path() + ": " + e.getMessage(), e);
    }
    if (rowCount != file.rowCount()) {
      throw Errors.corrupt(
          file.path() + " has " + rowCount + " rows, but its manifest entry states " + file.rowCount() + ".", null);
    }
    return table;
  }

  private static EqualityKeys held(Identity identity, Callable<EqualityKeys> load) throws IOException {
    FutureTask<EqualityKeys> mine = new FutureTask<>(load);
    while (true) {
      FutureTask<EqualityKeys> table;
      synchronized (TABLES) {
        table = TABLES.computeIfAbsent(identity, each -> mine);
      }
      if (table == mine) {
        mine.run();
      }
      try {
        EqualityKeys keys = table.get();
        if (table == mine) {
          shrink(identity);
        }
        return keys;
      } catch (ExecutionException e) {
        synchronized (TABLES) {
          TABLES.remove(identity, table);
        }
        // The other task may have been cancelled while it read. This one then reads for itself.
        if (table == mine) {
          throw e.getCause() instanceof Error error ? new IllegalStateException(error) : Errors.unchecked((Exception) e.getCause());
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new InterruptedIOException("interrupted while another task reads equality deletes");
      }
    }
  }

  /** Drops tables beyond the limit, the newest one last. Tasks that use a dropped table keep it until they end. */
  private static void shrink(Identity newest) throws InterruptedException, ExecutionException {
    synchronized (TABLES) {
      TABLES.get(newest);
      long size = 0;
      for (FutureTask<EqualityKeys> each : TABLES.values()) {
        size += each.isDone() ? sizeBytes(each) : 0;
      }
      for (Iterator<FutureTask<EqualityKeys>> eldest = TABLES.values().iterator(); size > MAX_BYTES && eldest.hasNext();) {
        FutureTask<EqualityKeys> each = eldest.next();
        if (each.isDone()) {
          size -= sizeBytes(each);
          eldest.remove();
        }
      }
    }
  }

  private static long sizeBytes(FutureTask<EqualityKeys> table) {
    try {
      return table.get().sizeBytes();
    } catch (ExecutionException | InterruptedException e) {
      return 0; // The task that loads it raises the error.
    }
  }
}
