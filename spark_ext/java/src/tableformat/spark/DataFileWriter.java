package tableformat.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.util.HadoopStreams;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;

/** A Parquet data file that is being written. */
final class DataFileWriter {
  /** The footer length and magic number at the end of a Parquet file. */
  private static final int TAIL_BYTES = 8;

  private final String location;
  private final Path path;
  private final FileSystem files;
  private final FloatColumns floats;
  private final ParquetWriter<InternalRow> writer;
  private long rowCount;

  DataFileWriter(String location, WritePlan plan, Configuration configuration) throws IOException {
    this.location = location;
    this.path = new Path(location);
    this.files = fileSystem(path, configuration);
    this.floats = new FloatColumns(plan);
    Builder builder = new Builder(new NewFile(files, path), plan, floats).withConf(configuration)
        .withCompressionCodec(plan.codec).withPageWriteChecksumEnabled(true);
    this.writer = BloomFilters.added(RowGroups.limited(builder, plan.rowGroupLimit), plan.bloomFilters).build();
  }

  /** A file system that does not write Hadoop's checksum files, which would not be removed with the data. */
  private static FileSystem fileSystem(Path path, Configuration configuration) throws IOException {
    FileSystem files = path.getFileSystem(configuration);
    return files instanceof LocalFileSystem local ? local.getRawFileSystem() : files;
  }

  void write(InternalRow row) throws IOException {
    writer.write(row);
    rowCount++;
  }

  /** The number of bytes so far, including those in memory. Visits every column. */
  long sizeBytes() {
    return writer.getDataSize();
  }

  /** A finished file. */
  record Finished(String location, long sizeBytes, long rowCount, byte[] footer, FloatColumns floats) {}

  Finished finish() throws IOException {
    writer.close();
    long size = files.getFileStatus(path).getLen();
    try (FSDataInputStream input = files.open(path)) {
      byte[] tail = new byte[TAIL_BYTES];
      input.readFully(size - TAIL_BYTES, tail);
      byte[] footer = new byte[ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt() + TAIL_BYTES];
      input.readFully(size - footer.length, footer);
      return new Finished(location, size, rowCount, footer, floats);
    }
  }

  /** Removes the file, in any state. */
  void abandon() throws IOException {
    try {
      writer.close();
    } catch (IOException | RuntimeException e) {
      // The file could not be written, so the failure to close it adds no information.
    }
    files.delete(path, false);
  }

  static void delete(String location, Configuration configuration) throws IOException {
    Path path = new Path(location);
    fileSystem(path, configuration).delete(path, false);
  }

  private static final class Builder extends ParquetWriter.Builder<InternalRow, Builder> {
    private final WritePlan plan;
    private final FloatColumns floats;

    Builder(OutputFile file, WritePlan plan, FloatColumns floats) {
      super(file);
      this.plan = plan;
      this.floats = floats;
    }

    @Override protected Builder self() {
      return this;
    }

    /**
     * SP-49: without the setting, Spark 3.5 refuses dates before 1582 unless the session states their calendar. Tables have only one
     * calendar.
     */
    @Override protected WriteSupport<InternalRow> getWriteSupport(Configuration configuration) {
      SQLConf settings = SessionSettings.with(ParquetOutput.CALENDAR, SQLConf.get());
      return SQLConf$.MODULE$.withExistingConf(settings, () -> new DataFileSupport(plan, floats));
    }
  }

  private record NewFile(FileSystem files, Path path) implements OutputFile {
    @Override public PositionOutputStream create(long blockSize) throws IOException {
      return HadoopStreams.wrap(files.create(path, false));
    }

    @Override public PositionOutputStream createOrOverwrite(long blockSize) throws IOException {
      throw new IOException(path + " cannot be overwritten; data files are always new");
    }

    @Override public boolean supportsBlockSize() {
      return false;
    }

    @Override public long defaultBlockSize() {
      return 0;
    }

    @Override public String getPath() {
      return path.toString();
    }
  }
}
