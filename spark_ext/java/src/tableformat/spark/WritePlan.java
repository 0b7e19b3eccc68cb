package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Python's plan of a write (`plan_write`), as executors need it. */
final class WritePlan implements Serializable {
  /** The rows' columns, which are the table's, in its order. */
  final StructType schema;

  /** The columns as Parquet's writer gets them: a uuid, which is text for Spark, as bytes. */
  final StructType stored;

  /** Which columns are uuids. */
  final boolean[] isUuid;

  final boolean hasUuids;
  final Map<String, String> footer;
  final PartitionField[] partition;
  final String[] stems;
  final CompressionCodecName codec;
  final String level;
  final long targetFileSizeBytes;
  final int rowGroupLimit;
  final FilterOption[] bloomFilters;

  /** Ordinals of the columns whose distinct values are reported; empty when nobody asks for any. */
  final int[] prefix;

  /** Ordinals of the columns whose values in the rows say what is replaced; empty when nothing is, or prefixes (SQ-34). */
  final int[] equal;

  /** What exists, where rows have to be held against it or kept apart; else null. */
  final RangePlaces ranges;

  /** Whether rows that are refused go to a file of their own, instead of failing the write. */
  final boolean diverts;

  /** The table's options of S3A. */
  final Map<String, String> s3;

  /** The columns that tell an older message of a prefix from a newer one, and where they are in the rows (SP-98). */
  final StructField[] order;

  final int[] orderOrdinals;

  /** Ordinals of the key columns behind the prefix; empty when no prefixes are replaced. */
  final int[] rest;

  /** What each row does, where a column says so; else null (SP-108). */
  final RowOperations operations;

  /** Whether of rows with one key any one is written (SP-109). */
  final boolean ignoresDuplicates;

  /** The columns of rows that name what is deleted, and where the key is in them; else null (SP-107). */
  final StructType deleted;

  final int[] deletedKey;

  private final String columns;

  /** `table` has the rows' columns; `rows` are those that they came with. */
  WritePlan(JsonNode plan, StructType schema, Replacement replacement, StructType table, StructType rows) {
    boolean deletes = plan.get("operation").asText().equals("delete");
    this.order = replacement == null ? new StructField[0] : replacement.order(rows);
    this.orderOrdinals = replacement == null ? new int[0] : replacement.orderOrdinals(schema);
    this.operations = replacement == null ? null : replacement.operations(plan.get("codes"), schema, rows);
    this.ignoresDuplicates = plan.get("operation").asText().equals("insert-ignore");
    this.deleted = deletes ? table : null;
    this.deletedKey = deletes
        ? Arrays.stream(replacement.keyOf(schema, table)).mapToInt(field -> Replacement.find(List.of(table.fieldNames()), field.name())).toArray()
        : null;
    this.rest = Arrays.stream(Json.strings(plan.get("rest"))).mapToInt(schema::fieldIndex).toArray();
    this.schema = schema;
    this.columns = plan.get("columns").toString();
    this.isUuid = new boolean[schema.size()];
    StructField[] fields = schema.fields().clone();
    for (int i = 0; i < fields.length; i++) {
      isUuid[i] = plan.get("columns").get(i).path("uuid").asBoolean();
      if (isUuid[i]) {
        fields[i] = new StructField(fields[i].name(), DataTypes.BinaryType, fields[i].nullable(), fields[i].metadata());
      }
    }
    this.stored = new StructType(fields);
    this.hasUuids = !Arrays.equals(isUuid, new boolean[isUuid.length]);
    this.footer = new HashMap<>(Json.map(plan.get("footer")));
    this.partition = StreamSupport.stream(plan.get("partition").spliterator(), false)
        .map(field -> PartitionField.of(field, schema)).toArray(PartitionField[]::new);
    this.stems = Json.strings(plan.get("stems"));
    this.codec = codec(plan.get("codec").asText());
    this.level = plan.get("level").isNull() ? null : plan.get("level").asText();
    this.targetFileSizeBytes = plan.get("target_file_size_bytes").asLong();
    this.rowGroupLimit = plan.get("row_group_limit").asInt();
    this.bloomFilters = StreamSupport.stream(plan.get("bloom_filters").spliterator(), false).map(FilterOption::of)
        .toArray(FilterOption[]::new);
    this.prefix = Arrays.stream(Json.strings(plan.get("prefix"))).mapToInt(schema::fieldIndex).toArray();
    this.equal = Arrays.stream(Json.strings(plan.get("equal"))).mapToInt(schema::fieldIndex).toArray();
    this.ranges = plan.get("ranges").isNull() ? null : new RangePlaces(plan.get("ranges"), schema);
    this.diverts = plan.get("diverts").asBoolean();
    this.s3 = Json.map(plan.get("s3"));
  }

  private static CompressionCodecName codec(String name) {
    return switch (name) {
      case "zstd" -> CompressionCodecName.ZSTD;
      case "snappy" -> CompressionCodecName.SNAPPY;
      case "gzip" -> CompressionCodecName.GZIP;
      case "lz4" -> CompressionCodecName.LZ4_RAW;
      case "brotli" -> CompressionCodecName.BROTLI;
      default -> CompressionCodecName.UNCOMPRESSED;
    };
  }

  /** The trees of field ids (`field_tree.py`), one a column. */
  JsonNode columns() {
    return Json.parse(columns);
  }
}
