import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.BaseDeleteLoader;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.deletes.PositionDelete;
import org.apache.iceberg.deletes.PositionDeleteIndex;
import org.apache.iceberg.deletes.PositionDeleteWriter;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.DeleteWriteResult;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.SnapshotUtil;

/** A table of Iceberg's Java library, and what its generic reader finds in it. */
class ForeignTable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final DefaultPrettyPrinter ONE_LINE_A_ROW = new DefaultPrettyPrinter();

    static {
        ONE_LINE_A_ROW.indentArraysWith(DefaultIndenter.SYSTEM_LINEFEED_INSTANCE);
        ONE_LINE_A_ROW.indentObjectsWith(new DefaultPrettyPrinter.FixedSpaceIndenter());
    }

    /** Of a table's older metadata files one is kept: the tables are committed to the repository. */
    private static final Map<String, String> FEW_FILES =
            Map.of("write.metadata.previous-versions-max", "1", "write.metadata.delete-after-commit.enabled", "true");

    private final Path directory;
    private final Table table;
    private int writtenFileCount = 0;

    ForeignTable(String name, Schema schema, PartitionSpec spec, Map<String, String> properties) {
        this("file:" + Path.of("").toAbsolutePath() + "/", name, schema, spec, properties);
    }

    ForeignTable(String parent, String name, Schema schema, PartitionSpec spec, Map<String, String> properties) {
        Map<String, String> all = new HashMap<>(FEW_FILES);
        all.putAll(properties);
        String location = parent + name;
        directory = Path.of(location.replaceFirst("^file:", ""));
        table = new HadoopTables(new Configuration()).create(schema, spec, SortOrder.unsorted(), all, location);
    }

    Table iceberg() {
        return table;
    }

    static Record record(Types.StructType type, Object... values) {
        Record record = GenericRecord.create(type);
        for (int place = 0; place < values.length; place++) {
            record.set(place, values[place]);
        }
        return record;
    }

    Record row(Object... values) {
        return record(table.schema().asStruct(), values);
    }

    /** A data file with rows of one partition, which is that of the first row. */
    DataFile data(Record... rows) throws IOException {
        return dataOf(table.schema(), rows);
    }

    DataFile dataOf(Schema schema, Record... rows) throws IOException {
        PartitionKey partition = new PartitionKey(table.spec(), schema);
        partition.partition(new InternalRecordWrapper(schema.asStruct()).wrap(rows[0]));
        GenericFileWriterFactory factory = new GenericFileWriterFactory.Builder(table).dataSchema(schema).build();
        DataWriter<Record> writer = factory.newDataWriter(encrypted("data.parquet"), table.spec(), partition);
        try (writer) {
            for (Record row : rows) {
                writer.write(row);
            }
        }
        return writer.toDataFile();
    }

    DataFile append(Record... rows) throws IOException {
        DataFile file = data(rows);
        table.newAppend().appendFile(file).commit();
        return file;
    }

    /** Deletes by the columns of `key`, in a file that stores the columns of `stored`. */
    DeleteFile equality(PartitionSpec spec, StructLike partition, Schema key, Schema stored, Record... rows) throws IOException {
        int[] ids = key.columns().stream().mapToInt(Types.NestedField::fieldId).toArray();
        GenericFileWriterFactory factory =
                new GenericFileWriterFactory.Builder(table).equalityFieldIds(ids).equalityDeleteRowSchema(stored).build();
        EqualityDeleteWriter<Record> writer = factory.newEqualityDeleteWriter(encrypted("equality.parquet"), spec, partition);
        try (writer) {
            for (Record row : rows) {
                writer.write(row);
            }
        }
        return writer.toDeleteFile();
    }

    /** Deletes in the partition of a data file. */
    DeleteFile equality(DataFile sibling, Schema key, Record... rows) throws IOException {
        return equality(table.specs().get(sibling.specId()), sibling.partition(), key, key, rows);
    }

    /** One file of position deletes for data files of one partition. */
    DeleteFile positions(Map<DataFile, List<Long>> deleted) throws IOException {
        List<DataFile> files = deleted.keySet().stream().sorted(Comparator.comparing(DataFile::location)).toList();
        GenericFileWriterFactory factory = new GenericFileWriterFactory.Builder(table).build();
        PositionDeleteWriter<Record> writer = factory.newPositionDeleteWriter(
                encrypted("positions.parquet"), table.specs().get(files.get(0).specId()), files.get(0).partition());
        try (writer) {
            for (DataFile file : files) {
                for (long position : deleted.get(file)) {
                    writer.write(PositionDelete.<Record>create().set(file.location(), position));
                }
            }
        }
        return writer.toDeleteFile();
    }

    void delete(DeleteFile file) {
        table.newRowDelta().addDeletes(file).commit();
    }

    /** One Puffin file with a vector for each data file; the vectors replace all earlier position deletes of these files. */
    RowDelta vectors(Map<DataFile, List<Long>> deleted) throws IOException {
        BaseDVFileWriter writer = new BaseDVFileWriter(() -> output("vectors.puffin"), this::deletedBefore);
        try (writer) {
            for (DataFile file : deleted.keySet()) {
                for (long position : deleted.get(file)) {
                    writer.delete(file.location(), position, table.specs().get(file.specId()), file.partition());
                }
            }
        }
        DeleteWriteResult written = writer.result();
        RowDelta delta = table.newRowDelta().validateFromSnapshot(table.currentSnapshot().snapshotId());
        written.deleteFiles().forEach(delta::addDeletes);
        written.rewrittenDeleteFiles().forEach(delta::removeDeletes);
        return delta;
    }

    private PositionDeleteIndex deletedBefore(String location) {
        for (FileScanTask task : table.newScan().planFiles()) {
            if (task.file().location().equals(location)) {
                return new BaseDeleteLoader(file -> table.io().newInputFile(file)).loadPositionDeletes(task.deletes(), location);
            }
        }
        throw new IllegalArgumentException(location);
    }

    private EncryptedOutputFile encrypted(String suffix) {
        return EncryptedFiles.plainAsEncryptedOutput(output(suffix));
    }

    private OutputFile output(String suffix) {
        String name = String.format("%02d-%s", ++writtenFileCount, suffix);
        return table.io().newOutputFile(table.locationProvider().newDataLocation(name));
    }

    /** Writes `expected.json`: the rows of every snapshot by Iceberg's generic reader, and the files of the current one. */
    void finish() throws IOException {
        Map<String, Object> expected = new LinkedHashMap<>();
        int version = ((HasTableOperations) table).operations().current().formatVersion();
        expected.put("writer", "Iceberg Java " + org.apache.iceberg.IcebergBuild.version());
        expected.put("format_version", version);
        Map<String, Object> refs = new LinkedHashMap<>();
        table.refs().forEach((name, ref) -> refs.put(name, ref.snapshotId()));
        expected.put("refs", refs);
        List<Object> snapshots = new ArrayList<>();
        for (Snapshot snapshot : table.snapshots()) {
            Schema schema = SnapshotUtil.schemaFor(table, snapshot.snapshotId());
            Map<String, Object> stated = new LinkedHashMap<>();
            stated.put("snapshot_id", snapshot.snapshotId());
            stated.put("operation", snapshot.operation());
            stated.put("columns", columns(schema));
            stated.put("rows", rows(snapshot, schema));
            snapshots.add(stated);
        }
        expected.put("snapshots", snapshots);
        expected.put("columns", columns(table.schema()));
        expected.put("rows", rows(table.currentSnapshot(), table.schema()));
        if (version >= 3) {
            expected.put("row_lineage", rows(table.currentSnapshot(), MetadataColumns.schemaWithRowLineage(table.schema().select("id"))));
        }
        expected.put("delete_files", deleteFiles());
        expected.put("data_files", dataFileCount());
        JSON.writer(ONE_LINE_A_ROW).writeValue(directory.resolve("expected.json").toFile(), expected);
    }

    private List<Object> rows(Snapshot snapshot, Schema schema) throws IOException {
        List<Object> rows = new ArrayList<>();
        try (CloseableIterable<Record> records = IcebergGenerics.read(table).useSnapshot(snapshot.snapshotId()).project(schema).build()) {
            for (Record record : records) {
                rows.add(ReadTables.fields(record, schema.asStruct()));
            }
        }
        return rows;
    }

    private static List<String> columns(Schema schema) {
        return schema.columns().stream().map(Types.NestedField::name).toList();
    }

    private List<Object> deleteFiles() throws IOException {
        List<Object> files = new ArrayList<>();
        for (ManifestFile manifest : table.currentSnapshot().deleteManifests(table.io())) {
            try (CloseableIterable<DeleteFile> entries = ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs())) {
                for (DeleteFile file : entries) {
                    Map<String, Object> stated = new LinkedHashMap<>();
                    stated.put("content", file.content().id());
                    stated.put("file_format", file.format().name());
                    stated.put("record_count", file.recordCount());
                    stated.put("spec_id", file.specId());
                    stated.put("equality_ids", file.equalityFieldIds());
                    files.add(stated);
                }
            }
        }
        return files;
    }

    private int dataFileCount() {
        return table.currentSnapshot().dataManifests(table.io()).stream().mapToInt(each -> each.addedFilesCount() + each.existingFilesCount()).sum();
    }
}
