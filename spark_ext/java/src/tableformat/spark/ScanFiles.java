package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The result of planning a scan: the data files to read. Each has its deleted positions, its other deletes, the values that all its rows
 * share, and the layout to read it with.
 *
 * <pre>
 * {"files": [{"path": "...", "size": 123, "layout": 0, "deleted": 1, "reads_deleted": false,
 *             "compared": {"number": 5, "rows": 1000, "spans": [{"set": 0, "begin": 0, "end": 3, "newer_than": 5}], "equality": [0]}}],
 *  "keys": [{"name": "id", "family": "integer"}], "span_sets": [{"keys": [0], "part": 2}],
 *  "delete_files": [{"path": "...", "size": 123, "number": 6, "rows": 1000}], "equality_sets": [{"keys": [0], "files": [0]}],
 *  "layouts": [{"filters": true, "names": {"1": "id"}, "constants": ["country"], "checksums": true}],
 *  "constants": {"type": "struct", ...}, "s3": {"fs.s3a.endpoint": "..."}, "counts": {"result-data-files": 1, ...},
 *  "tasks": {"split-size": 1024}}
 * </pre>
 *
 * "deleted" is the index of the part with the positions. "constants" is null or the type of part 0, an Arrow stream with one row for each
 * file. Its columns are metadata columns such as `_spec_id`, and columns that are not in the file according to its layout. A layout states
 * how columns are found in a file. "filters" states whether row-group filters, which Spark resolves by name, refer to the same columns in
 * the file. "nan" states whether a filtered column may have NaNs. For files without field ids, "names" has the column name of each field
 * id. "s3" has the options of the table for S3A.
 *
 * <p>"compared" has the deletes that are compared with the rows of a file (decision 65). "keys" has the columns of all these deletes; other
 * lists refer to them by their positions. A span set is in the binary part that it names.
 */
final class ScanFiles {
  /** Positions and spans up to this size are sent with the tasks, larger ones once to each executor. */
  private static final int INLINE_DELETED_BYTES = 64 << 10;

  private final List<FileTask> tasks;
  private final JsonNode layouts;
  private final StructType constants;
  private final byte[][] shared;
  private final Map<String, String> s3;
  private final JsonNode counts;
  private final JsonNode taskSizes;
  private final JsonNode keys;
  private final KeyDeletes.EqualitySet[] equalitySets;

  private ScanFiles(List<FileTask> tasks, StructType constants, byte[][] shared, JsonNode answer) {
    this.tasks = tasks;
    this.layouts = answer.get("layouts");
    this.constants = constants;
    this.shared = shared;
    this.s3 = Json.map(answer.get("s3"));
    this.counts = answer.path("counts");
    this.taskSizes = answer.path("tasks");
    this.keys = answer.path("keys");
    this.equalitySets = equalitySets(answer);
  }

  static ScanFiles of(Sidecar.Answer answer) {
    JsonNode result = answer.result();
    boolean hasConstants = !result.get("constants").isNull();
    StructType constants = hasConstants ? Json.struct(result.get("constants")) : new StructType();
    InternalRow[] values = hasConstants ? ArrowRows.read(answer.parts()[0], constants) : null;
    List<FileTask> tasks = new ArrayList<>();
    Parts parts = new Parts(answer.parts());
    for (JsonNode file : result.get("files")) {
      Part deleted = file.has("deleted") ? parts.of(file.get("deleted").asInt()) : Part.NONE;
      tasks.add(new FileTask(
          file.get("path").asText(), 0, file.get("size").asLong(), file.get("size").asLong(),
          file.get("layout").asInt(), values == null ? null : values[tasks.size()], deleted.bytes(), deleted.shared(),
          file.path("reads_deleted").asBoolean(), keyDeletes(file.path("compared"), result.path("span_sets"), parts)));
    }
    return new ScanFiles(tasks, constants, parts.shared.toArray(new byte[0][]), result);
  }

  /** A binary part: its bytes, or its index among the shared parts if it is large. */
  private record Part(byte[] bytes, int shared) {
    static final Part NONE = new Part(null, -1);
  }

  /** The binary parts of an answer. */
  private static final class Parts {
    private final byte[][] parts;
    private final List<byte[]> shared = new ArrayList<>();
    private final Map<Integer, Part> known = new HashMap<>();

    Parts(byte[][] parts) {
      this.parts = parts;
    }

    Part of(int index) {
      return known.computeIfAbsent(index, each -> {
        if (parts[each].length <= INLINE_DELETED_BYTES) {
          return new Part(parts[each], -1);
        }
        shared.add(parts[each]);
        return new Part(null, shared.size() - 1);
      });
    }
  }

  private static KeyDeletes keyDeletes(JsonNode compared, JsonNode spanSets, Parts parts) {
    if (compared.isMissingNode()) {
      return null;
    }
    KeyDeletes.Spans[] spans = new KeyDeletes.Spans[compared.get("spans").size()];
    for (int i = 0; i < spans.length; i++) {
      JsonNode each = compared.get("spans").get(i);
      JsonNode set = spanSets.get(each.get("set").asInt());
      Part part = parts.of(set.get("part").asInt());
      spans[i] = new KeyDeletes.Spans(
          Json.ints(set.get("keys")), part.bytes(), part.shared(), each.get("begin").asInt(), each.get("end").asInt(),
          each.get("newer_than").asLong());
    }
    return new KeyDeletes(
        compared.get("number").asLong(), compared.get("rows").asLong(), spans, Json.ints(compared.get("equality")));
  }

  private static KeyDeletes.EqualitySet[] equalitySets(JsonNode answer) {
    List<KeyDeletes.DeleteFile> files = new ArrayList<>();
    for (JsonNode file : answer.path("delete_files")) {
      files.add(new KeyDeletes.DeleteFile(
          file.get("path").asText(), file.get("size").asLong(), file.get("number").asLong(), file.get("rows").asLong()));
    }
    List<KeyDeletes.EqualitySet> sets = new ArrayList<>();
    for (JsonNode set : answer.path("equality_sets")) {
      KeyDeletes.DeleteFile[] chosen =
          Arrays.stream(Json.ints(set.get("files"))).mapToObj(files::get).toArray(KeyDeletes.DeleteFile[]::new);
      sets.add(new KeyDeletes.EqualitySet(Json.ints(set.get("keys")), chosen));
    }
    return sets.toArray(new KeyDeletes.EqualitySet[0]);
  }

  /**
   * The numbers of files and manifests that the plan read, skipped and returned, by the names of a scan report. Empty for a list of files
   * that was not planned.
   */
  JsonNode counts() {
    return counts;
  }

  /** The table's settings for the tasks that read it, by the names of options (SP-57). */
  JsonNode taskSizes() {
    return taskSizes;
  }

  List<FileTask> tasks() {
    return tasks;
  }

  /** The specs of the files. The plan must have been requested with `_spec_id`. */
  Set<Integer> specIds() {
    if (tasks.isEmpty()) {
      return Set.of();
    }
    int place = constants.fieldIndex(MetadataColumns.SPEC_ID);
    return tasks.stream().map(task -> task.constants().getInt(place)).collect(Collectors.toSet());
  }

  /**
   * The files of each partition, by the values of `fields`. All specs of the files must have these fields, and the plan must have been
   * requested with `_partition`.
   */
  Map<InternalRow, List<FileTask>> byPartition(StructType fields) {
    if (tasks.isEmpty()) {
      return Map.of();
    }
    int place = constants.fieldIndex(MetadataColumns.PARTITION);
    StructType known = (StructType) constants.apply(place).dataType();
    UnsafeProjection comparable = UnsafeProjection.create(fields);
    Map<InternalRow, List<FileTask>> result = new LinkedHashMap<>();
    for (FileTask task : tasks) {
      InternalRow partition = task.constants().getStruct(place, known.size());
      Object[] values = new Object[fields.size()];
      for (int i = 0; i < values.length; i++) {
        values[i] = Constants.value(partition, known.fieldIndex(fields.apply(i).name()), fields.apply(i).dataType());
      }
      InternalRow key = comparable.apply(new GenericInternalRow(values)).copy();
      result.computeIfAbsent(key, each -> new ArrayList<>()).add(task);
    }
    return result;
  }

  /**
   * Reads the columns `required`, which can include metadata columns, of a table with the columns `own`. Its files can also have the
   * columns of `lineage`.
   */
  LakeReaderFactory readerFactory(StructType own, StructType lineage, StructType required, Predicate[] predicates) {
    StructType stored = Schemas.both(own, lineage);
    List<String> known = List.of(stored.fieldNames());
    StructType columns = new StructType(
        Arrays.stream(required.fields()).filter(field -> known.contains(field.name())).toArray(StructField[]::new));
    int[] readPlaces = places(required, columns);
    columns = Schemas.withIds(columns, stored);
    String[] metadata = MetadataColumns.among(required, own);
    List<String> wanted = Arrays.asList(metadata);
    boolean needsRowIndex = wanted.contains(MetadataColumns.POSITION) || wanted.contains(MetadataColumns.ROW_ID)
        || tasks.stream().anyMatch(task -> task.deleted() != null || task.sharedDeleted() >= 0 || task.keyDeletes() != null);
    Filter[] all = RowGroupFilters.of(
        Arrays.stream(predicates).filter(predicate -> isOverStoredValues(predicate, lineage)).toArray(Predicate[]::new));
    ParquetPartitionReaderFactory[] readers = new ParquetPartitionReaderFactory[layouts.size()];
    StructType keyColumns = keyColumns(own);
    ParquetPartitionReaderFactory[] readersWithKeys = keys.isEmpty() ? null : new ParquetPartitionReaderFactory[readers.length];
    int[][] constantPlaces = new int[layouts.size()][];
    for (int i = 0; i < readers.length; i++) {
      JsonNode layout = layouts.get(i);
      StructType physical = Schemas.notRequired(columns, lacking(layout));
      physical = layout.has("names") ? Schemas.renamed(physical, names(layout.get("names"))) : physical;
      if (needsRowIndex) {
        physical = physical.add(ParquetFiles.rowIndexColumn());
      }
      Filter[] filters = layout.get("filters").asBoolean() ? all : new Filter[0];
      filters = layout.path("nan").asBoolean() ? RowGroupFilters.besideNan(filters) : filters;
      boolean verifiesChecksums = layout.path("checksums").asBoolean();
      readers[i] = ParquetFiles.readerFactory(physical, filters, verifiesChecksums, s3);
      if (readersWithKeys != null && !layout.has("names")) {
        StructType withKeys = Schemas.both(physical, Schemas.notRequired(beside(columns, keyColumns), List.of()));
        readersWithKeys[i] = ParquetFiles.readerFactory(withKeys, filters, verifiesChecksums, s3);
      }
      constantPlaces[i] = constantPlaces(required, readPlaces, layout);
    }
    Broadcast<byte[][]> broadcast = shared.length == 0 ? null : ParquetFiles.broadcast(shared, byte[][].class);
    return new LakeReaderFactory(
        required, metadata, readers, readPlaces, constantPlaces, inheritedPlaces(required, metadata), broadcast,
        comparedKeys(keyColumns), readersWithKeys, keyPlaces(columns, keyColumns), equalitySets, deleteReaders(keyColumns));
  }

  /** The delete columns that rows are compared with, as they are read from data files. */
  private StructType keyColumns(StructType own) {
    StructField[] fields = new StructField[keys.size()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = own.apply(keys.get(i).get("name").asText());
    }
    return Schemas.withIds(new StructType(fields), own);
  }

  private static StructType beside(StructType columns, StructType others) {
    List<String> known = List.of(columns.fieldNames());
    return new StructType(
        Arrays.stream(others.fields()).filter(field -> !known.contains(field.name())).toArray(StructField[]::new));
  }

  /** The positions of the delete columns in batches that have the read columns, the position of the row, and the other delete columns. */
  private static int[] keyPlaces(StructType columns, StructType keyColumns) {
    List<String> before = List.of(columns.fieldNames());
    List<String> after = List.of(beside(columns, keyColumns).fieldNames());
    return Arrays.stream(keyColumns.fieldNames())
        .mapToInt(name -> before.contains(name) ? before.indexOf(name) : before.size() + 1 + after.indexOf(name)).toArray();
  }

  private KeyEncoder.Key[] comparedKeys(StructType keyColumns) {
    KeyEncoder.Key[] result = new KeyEncoder.Key[keyColumns.size()];
    for (int i = 0; i < result.length; i++) {
      StructField field = keyColumns.apply(i);
      result[i] = new KeyEncoder.Key(Schemas.fieldId(field), field.dataType(), keys.get(i).get("family").asText());
    }
    return result;
  }

  /** DA-6, DA-11: readers of equality delete files. A file without one of the columns is an error, and pages are verified. */
  private ParquetPartitionReaderFactory[] deleteReaders(StructType keyColumns) {
    Map<List<Integer>, ParquetPartitionReaderFactory> readers = new HashMap<>();
    return Arrays.stream(equalitySets).map(set -> readers.computeIfAbsent(
        Arrays.stream(set.keys()).boxed().toList(), places -> {
          StructField[] fields = places.stream().map(place -> Schemas.demanded(keyColumns.apply(place))).toArray(StructField[]::new);
          return ParquetFiles.readerFactory(new StructType(fields), new Filter[0], true, s3);
        })).toArray(ParquetPartitionReaderFactory[]::new);
  }

  /** Whether the predicate has no lineage column. The statistics of a lineage column do not cover rows that inherit their value. */
  private static boolean isOverStoredValues(Predicate predicate, StructType lineage) {
    List<String> inherited = List.of(lineage.fieldNames());
    return Arrays.stream(predicate.references()).noneMatch(
        column -> column.fieldNames().length == 1 && inherited.contains(column.fieldNames()[0]));
  }

  /** For each lineage column the position of the inherited value among the constants; -1 for other columns. */
  private int[] inheritedPlaces(StructType required, String[] metadata) {
    int[] result = places(required, constants);
    for (int i = 0; i < result.length; i++) {
      if (!MetadataColumns.isLineage(metadata[i])) {
        result[i] = -1;
      }
    }
    return result;
  }

  private static int[] places(StructType required, StructType among) {
    List<String> names = List.of(among.fieldNames());
    return Arrays.stream(required.fieldNames()).mapToInt(names::indexOf).toArray();
  }

  /** Constants are columns that are not read, and columns that the files lack according to the layout. */
  private int[] constantPlaces(StructType required, int[] readPlaces, JsonNode layout) {
    List<String> lacking = lacking(layout);
    int[] result = places(required, constants);
    for (int i = 0; i < result.length; i++) {
      if (readPlaces[i] >= 0 && !lacking.contains(required.apply(i).name())) {
        result[i] = -1;
      }
    }
    return result;
  }

  /** The columns whose values are in the manifest, so that the files may lack them. */
  private static List<String> lacking(JsonNode layout) {
    return layout.has("constants") ? List.of(Json.strings(layout.get("constants"))) : List.of();
  }

  private static Map<Long, String> names(JsonNode names) {
    Map<Long, String> result = new HashMap<>();
    names.properties().forEach(entry -> result.put(Long.valueOf(entry.getKey()), entry.getValue().asText()));
    return result;
  }
}
