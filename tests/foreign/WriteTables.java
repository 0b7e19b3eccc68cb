import java.io.DataOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.Deletes;
import org.apache.iceberg.deletes.PositionDeleteIndex;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.types.Types.NestedField;
import org.roaringbitmap.longlong.Roaring64NavigableMap;

/** Writes small tables with Iceberg's Java library below the working directory: `make foreign-tables`. */
class WriteTables {
    private static final NestedField ID = NestedField.required(1, "id", Types.LongType.get());
    private static final NestedField CAT = NestedField.optional(2, "cat", Types.StringType.get());
    private static final NestedField VAL = NestedField.optional(3, "val", Types.DoubleType.get());
    private static final Schema SCHEMA = new Schema(ID, CAT, VAL);
    private static final PartitionSpec PLAIN = PartitionSpec.unpartitioned();

    public static void main(String[] arguments) throws IOException {
        v1Evolved();
        v2Equality();
        v2EqualityTypes();
        v2EqualityPartitioned();
        v2Positions();
        v2Specs();
        v2Schema();
        v2Branches();
        v2Relative();
        v3Vectors();
        v3Upgraded();
        v3Defaults();
        v3NestedDefaults();
        vectors();
    }

    /** A column is renamed, two are promoted, a partition field is removed; rows are replaced file by file. */
    private static void v1Evolved() throws IOException {
        Schema schema = new Schema(
                NestedField.required(1, "id", Types.IntegerType.get()), CAT, NestedField.optional(3, "val", Types.FloatType.get()));
        ForeignTable table = new ForeignTable(
                "v1_evolved", schema, PartitionSpec.builderFor(schema).identity("cat").build(),
                Map.of("format-version", "1", "write.metadata.compression-codec", "gzip"));
        DataFile a = table.data(table.row(1, "a", 1.5f), table.row(2, "a", 2.5f));
        DataFile b = table.data(table.row(11, "b", 11.5f), table.row(12, "b", null));
        table.iceberg().newAppend().appendFile(a).appendFile(b).commit();
        table.iceberg().updateSchema().renameColumn("cat", "kind").commit();
        table.iceberg().updateSchema().updateColumn("id", Types.LongType.get()).updateColumn("val", Types.DoubleType.get()).commit();
        table.iceberg().updateSpec().removeField("cat").addField(Expressions.bucket("id", 4)).commit();
        table.append(table.row(30_000_000_000L, "a", 1e300), table.row(30_000_000_000L, null, null));
        DataFile replacement = table.data(table.row(2L, "c", 2.25));
        table.iceberg().newOverwrite().deleteFile(a).addFile(replacement).commit();
        table.finish();
    }

    /** Deletes by (id), by (id, cat) with a null and by a null cat; upserts; a column that is stored and not a key. */
    private static void v2Equality() throws IOException {
        ForeignTable table = new ForeignTable("v2_equality", SCHEMA, PLAIN, version(2));
        DataFile first = table.append(numbered(table, 0, 10));
        table.append(numbered(table, 10, 20));
        Schema byId = SCHEMA.select("id");
        Schema byIdAndCat = SCHEMA.select("id", "cat");
        table.delete(table.equality(PLAIN, null, byId, byId, key(byId, 4L), key(byId, 8L)));
        upsert(table, byId, table.row(3L, "new", 33.0), table.row(14L, "new", 14.5), table.row(50L, "x", 1.0));
        table.delete(table.equality(PLAIN, null, byIdAndCat, byIdAndCat, key(byIdAndCat, 0L, "c0"), key(byIdAndCat, 12L, null), key(byIdAndCat, 13L, "c1")));
        // The first row for 50 is replaced within the commit that adds it.
        DataFile twice = table.data(table.row(50L, "y", 1.5), table.row(60L, null, 6.0), table.row(50L, "x", 2.0));
        table.iceberg().newRowDelta().addRows(twice)
                .addDeletes(table.equality(PLAIN, null, byId, byId, key(byId, 50L)))
                .addDeletes(table.positions(Map.of(twice, List.of(0L)))).commit();
        table.append(table.row(61L, "z", 6.1), table.row(62L, null, 6.2), table.row(4L, "again", 4.5));
        Schema byCat = SCHEMA.select("cat");
        table.delete(table.equality(PLAIN, null, byCat, byCat, key(byCat, (Object) null)));
        table.append(table.row(70L, null, 7.0));
        // The stored values of cat are those of no row.
        table.delete(table.equality(PLAIN, null, byId, byIdAndCat, key(byIdAndCat, 6L, "other"), key(byIdAndCat, 70L, "other"), key(byIdAndCat, 99L, "c0")));
        table.finish();
        assert first.recordCount() == 10;
    }

    private static void v2EqualityTypes() throws IOException {
        Schema schema = new Schema(
                ID, NestedField.optional(2, "s", Types.StringType.get()), NestedField.optional(3, "d", Types.DateType.get()),
                NestedField.optional(4, "ts", Types.TimestampType.withoutZone()), NestedField.optional(5, "dec", Types.DecimalType.of(9, 2)),
                NestedField.optional(6, "b", Types.BooleanType.get()), NestedField.optional(7, "tstz", Types.TimestampType.withZone()),
                NestedField.optional(8, "bin", Types.BinaryType.get()), NestedField.optional(9, "x", Types.DoubleType.get()));
        ForeignTable table = new ForeignTable("v2_equality_types", schema, PLAIN, version(2));
        Record[] rows = new Record[14];
        for (int i = 0; i < rows.length; i++) {
            var time = LocalDate.of(2026, 1, 1).atTime(i, 0, 1);
            rows[i] = table.row(
                    (long) i, i == 1 ? null : "s" + "é".repeat(i), LocalDate.of(2026, 1, 1 + i), time, new BigDecimal(i + ".50"),
                    i % 2 == 1, time.atOffset(java.time.ZoneOffset.UTC), ByteBuffer.wrap(new byte[] {0, (byte) (250 + i)}),
                    i == 12 ? Double.NaN : i == 11 ? -0.0 : i * 1.5);
        }
        table.append(rows);
        deleteKeys(table, rows, new int[] {2}, "s");
        deleteKeys(table, rows, new int[] {3}, "d");
        deleteKeys(table, rows, new int[] {4}, "ts");
        deleteKeys(table, rows, new int[] {5}, "dec");
        deleteKeys(table, rows, new int[] {1, 6}, "s", "b");
        deleteKeys(table, rows, new int[] {7}, "tstz");
        deleteKeys(table, rows, new int[] {8}, "bin");
        table.finish();
    }

    /** A Flink job's upserts by (id, cat), partitioned by cat; then a delete of an unpartitioned spec reaches all partitions. */
    private static void v2EqualityPartitioned() throws IOException {
        Schema schema = new Schema(List.of(ID, NestedField.required(2, "cat", Types.StringType.get()), VAL), java.util.Set.of(1, 2));
        ForeignTable table = new ForeignTable("v2_equality_partitioned", schema, PartitionSpec.builderFor(schema).identity("cat").build(), version(2));
        Schema key = schema.select("id", "cat");
        DataFile a = table.append(table.row(1L, "a", 1.0), table.row(2L, "a", 2.0), table.row(10L, "a", 10.0));
        DataFile b = table.append(table.row(1L, "b", 1.0), table.row(3L, "b", 3.0), table.row(11L, "b", 11.0));
        upsert(table, key, table.row(1L, "a", 1.5), table.row(12L, "a", 12.0));
        // The rows of a change that takes itself back: inserted, and deleted by their position.
        DataFile undone = table.data(table.row(3L, "b", 3.5), table.row(3L, "b", 3.75));
        table.iceberg().newRowDelta().addRows(undone)
                .addDeletes(table.equality(b, key, key(key, 3L, "b")))
                .addDeletes(table.positions(Map.of(undone, List.of(0L)))).commit();
        table.delete(table.equality(a, key, key(key, 2L, "a"), key(key, 3L, "a")));
        table.iceberg().updateSpec().removeField("cat").commit();
        Schema byId = schema.select("id");
        table.delete(table.equality(table.iceberg().spec(), null, byId, byId, key(byId, 1L), key(byId, 11L)));
        table.iceberg().updateSpec().addField("cat").commit();
        table.append(table.row(1L, "c", 1.25), table.row(13L, "c", 13.0));
        table.finish();
    }

    /** Position deletes that name one file and several, twice for one file, and in a partition. */
    private static void v2Positions() throws IOException {
        ForeignTable table = new ForeignTable("v2_positions", SCHEMA, PartitionSpec.builderFor(SCHEMA).truncate("cat", 1).build(), version(2));
        DataFile first = table.append(numbered(table, 0, 10));
        DataFile second = table.append(numbered(table, 10, 20));
        DataFile third = table.append(table.row(30L, "d", 3.0), table.row(31L, "dd", 3.1));
        table.delete(table.positions(Map.of(first, List.of(3L, 4L))));
        table.delete(table.positions(Map.of(first, List.of(0L, 9L), second, List.of(0L, 1L, 2L))));
        DataFile updated = table.data(table.row(5L, "c", -5.0), table.row(6L, "c", -6.0));
        table.iceberg().newRowDelta().addRows(updated).addDeletes(table.positions(Map.of(first, List.of(5L, 6L)))).commit();
        table.delete(table.positions(Map.of(third, List.of(1L))));
        table.finish();
    }

    /** The partition spec changes twice; deletes of each spec reach its own files. */
    private static void v2Specs() throws IOException {
        Schema schema = new Schema(ID, CAT, NestedField.optional(3, "at", Types.TimestampType.withoutZone()));
        ForeignTable table = new ForeignTable("v2_specs", schema, PartitionSpec.builderFor(schema).identity("cat").build(), version(2));
        var day = LocalDate.of(2026, 3, 1).atStartOfDay();
        DataFile a = table.append(table.row(1L, "a", day), table.row(2L, "a", day.plusDays(1)), table.row(10L, "a", day.plusDays(2)));
        DataFile none = table.append(table.row(3L, null, day), table.row(4L, null, null));
        table.iceberg().updateSpec().addField(Expressions.day("at")).commit();
        DataFile daily = table.append(table.row(5L, "a", day.plusHours(1)), table.row(11L, "a", day.plusHours(2)), table.row(12L, "a", day.plusHours(3)));
        Schema byId = schema.select("id");
        table.delete(table.equality(a, byId, key(byId, 1L)));
        table.delete(table.equality(none, byId, key(byId, 4L)));
        table.delete(table.positions(Map.of(daily, List.of(1L))));
        table.iceberg().updateSpec().removeField("cat").removeField("at_day").addField(Expressions.bucket("id", 8)).commit();
        DataFile bucket = table.append(table.row(20L, "z", day.plusDays(40)), table.row(20L, "y", null));
        table.iceberg().newRowDelta().addDeletes(table.equality(daily, byId, key(byId, 12L))).addDeletes(table.positions(Map.of(bucket, List.of(1L)))).commit();
        table.finish();
    }

    /** Columns renamed, promoted, dropped and added again under the same name, moved, and within a struct. */
    private static void v2Schema() throws IOException {
        Schema schema = new Schema(
                NestedField.required(1, "id", Types.IntegerType.get()), NestedField.optional(2, "name", Types.StringType.get()),
                NestedField.optional(3, "price", Types.DecimalType.of(9, 2)), NestedField.optional(4, "weight", Types.FloatType.get()),
                NestedField.optional(5, "place", Types.StructType.of(
                        NestedField.optional(6, "city", Types.StringType.get()), NestedField.optional(7, "number", Types.IntegerType.get()))),
                NestedField.optional(8, "tags", Types.ListType.ofOptional(9, Types.StringType.get())),
                NestedField.optional(10, "counts", Types.MapType.ofOptional(11, 12, Types.StringType.get(), Types.IntegerType.get())));
        ForeignTable table = new ForeignTable("v2_schema", schema, PLAIN, version(2));
        Types.StructType place = schema.findType("place").asStructType();
        table.append(
                table.row(1, "a", new BigDecimal("1.25"), 1.5f, key(place, "X", 1), List.of("p", "q"), Map.of("k", 1)),
                table.row(2, "b", null, null, null, List.of(), Map.of()), table.row(11, null, new BigDecimal("-9.99"), 2.5f, key(place, null, 7), null, null));
        Schema byName = schema.select("name");
        table.delete(table.equality(PLAIN, null, byName, byName, key(byName, "b")));
        table.iceberg().updateSchema().renameColumn("name", "label").renameColumn("place.city", "town")
                .updateColumn("id", Types.LongType.get()).updateColumn("price", Types.DecimalType.of(18, 2))
                .updateColumn("weight", Types.DoubleType.get()).updateColumn("place.number", Types.LongType.get()).commit();
        Types.StructType town = table.iceberg().schema().findType("place").asStructType();
        table.append(
                table.row(3_000_000_000L, "b", new BigDecimal("12345678901234.56"), 0.1, key(town, "Y", 5_000_000_000L), List.of("r"), Map.of("m", 2)),
                table.row(4L, "c", null, null, null, null, null));
        table.iceberg().updateSchema().deleteColumn("weight").deleteColumn("tags").commit();
        table.iceberg().updateSchema().addColumn("weight", Types.StringType.get()).moveAfter("weight", "id")
                .addColumn("place", "zip", Types.StringType.get()).commit();
        Types.StructType zip = table.iceberg().schema().findType("place").asStructType();
        table.append(
                table.row(12L, "3 kg", "new", null, key(zip, "Z", 8L, "0815"), null),
                table.row(13L, null, null, new BigDecimal("0.01"), null, null));
        Schema byLabel = table.iceberg().schema().select("label");
        table.delete(table.equality(PLAIN, null, byLabel, byLabel, key(byLabel, "new")));
        table.finish();
    }

    /** Two branches with deletes of their own, and a tag. */
    private static void v2Branches() throws IOException {
        ForeignTable table = new ForeignTable("v2_branches", SCHEMA, PLAIN, version(2));
        DataFile first = table.append(numbered(table, 0, 12));
        long start = table.iceberg().currentSnapshot().snapshotId();
        table.iceberg().manageSnapshots().createTag("start", start).createBranch("audit", start).commit();
        Schema byId = SCHEMA.select("id");
        table.iceberg().newRowDelta().addDeletes(table.equality(PLAIN, null, byId, byId, key(byId, 1L), key(byId, 10L))).toBranch("audit").commit();
        table.iceberg().newAppend().appendFile(table.data(table.row(100L, "audit", 1.0))).toBranch("audit").commit();
        table.delete(table.positions(Map.of(first, List.of(2L, 11L))));
        table.append(table.row(200L, "main", 2.0));
        table.finish();
    }

    /** Its metadata has locations relative to a working directory. */
    private static void v2Relative() throws IOException {
        ForeignTable table = new ForeignTable("relative/tables/", "v2_relative", SCHEMA, PLAIN, version(2));
        table.append(numbered(table, 0, 12));
        Schema byId = SCHEMA.select("id");
        upsert(table, byId, table.row(3L, "new", 33.0), table.row(20L, "new", 20.0));
        table.delete(table.equality(PLAIN, null, byId, byId, key(byId, 5L), key(byId, 11L)));
        table.finish();
    }

    /** Deletion vectors of two files in one Puffin file, replaced ones, and updated rows that keep their ids. */
    private static void v3Vectors() throws IOException {
        ForeignTable table = new ForeignTable("v3_vectors", SCHEMA, PLAIN, version(3));
        DataFile first = table.append(numbered(table, 0, 20));
        DataFile second = table.append(numbered(table, 20, 40));
        table.vectors(Map.of(first, List.of(1L, 2L), second, List.of(1L, 2L))).commit();
        table.vectors(Map.of(first, List.of(3L), second, List.of(19L))).commit();
        Schema lineage = org.apache.iceberg.MetadataColumns.schemaWithRowLineage(SCHEMA);
        DataFile updated = table.dataOf(lineage, key(lineage, 10L, "c1", -5.0, 10L, null), key(lineage, 30L, "c0", -5.0, 30L, null));
        table.vectors(Map.of(first, List.of(10L), second, List.of(10L))).addRows(updated).commit();
        table.append(table.row(41L, "new", 41.0));
        table.finish();
    }

    /** Version 2 with position deletes and rows of two partitions, then version 3: vectors take over the positions. */
    private static void v3Upgraded() throws IOException {
        ForeignTable table = new ForeignTable("v3_upgraded", SCHEMA, PartitionSpec.builderFor(SCHEMA).bucket("id", 2).build(), version(2));
        DataFile first = table.append(table.row(1L, "a", 1.0), table.row(1L, "b", 1.5), table.row(1L, "c", 1.75));
        DataFile second = table.append(table.row(12L, "a", 12.0), table.row(12L, "b", 12.5), table.row(12L, "c", 12.75));
        table.delete(table.positions(Map.of(first, List.of(0L))));
        table.delete(table.positions(Map.of(second, List.of(0L))));
        table.iceberg().updateProperties().set("format-version", "3").commit();
        table.vectors(Map.of(first, List.of(2L))).commit();
        Schema byCat = SCHEMA.select("cat");
        table.append(table.row(2L, "d", 2.0), table.row(2L, "e", 2.5));
        table.delete(table.equality(second, byCat, key(byCat, "c")));
        table.finish();
    }

    /** Columns with default values: older rows have the initial default, unless their file stores the column. */
    private static void v3Defaults() throws IOException {
        ForeignTable table = new ForeignTable("v3_defaults", SCHEMA, PLAIN, version(3));
        DataFile first = table.append(numbered(table, 0, 12));
        table.iceberg().updateSchema()
                .addColumn("level", Types.IntegerType.get(), Expressions.lit(7))
                .addColumn("note", Types.StringType.get(), Expressions.lit("none"))
                .addColumn("day", Types.DateType.get(), Expressions.lit("2026-01-31").to(Types.DateType.get()))
                .addColumn("price", Types.DecimalType.of(9, 2), Expressions.lit(new BigDecimal("1.50")))
                .addRequiredColumn("is_open", Types.BooleanType.get(), Expressions.lit(true)).commit();
        table.append(
                table.row(20L, "a", 2.0, 1, null, LocalDate.of(2026, 2, 1), null, false),
                table.row(21L, "b", 2.1, null, "text", null, new BigDecimal("2.50"), true));
        table.vectors(Map.of(first, List.of(0L, 3L))).commit();
        Schema byLevel = table.iceberg().schema().select("id", "level", "note");
        table.iceberg().updateSchema().updateColumnDefault("level", Expressions.lit(8)).renameColumn("note", "remark").commit();
        table.append(table.row(22L, "c", 2.2, 8, "none", null, null, true), table.row(23L, "c", 2.3, 7, "none", null, null, true));
        table.delete(table.equality(PLAIN, null, byLevel, byLevel, key(byLevel, 20L, 1, null), key(byLevel, 5L, 7, "none"), key(byLevel, 23L, 7, "none")));
        table.append(table.row(24L, "d", 2.4, 7, "none", null, null, false));
        table.finish();
    }

    /** A field of a struct with a default value: in older files it is missing inside the struct. */
    private static void v3NestedDefaults() throws IOException {
        Schema schema = new Schema(ID, NestedField.optional(2, "place", Types.StructType.of(
                NestedField.optional(3, "city", Types.StringType.get()))));
        ForeignTable table = new ForeignTable("v3_nested_defaults", schema, PLAIN, version(3));
        Types.StructType city = schema.findType("place").asStructType();
        DataFile first = table.append(table.row(1L, key(city, "X")), table.row(2L, null), table.row(10L, key(city, (Object) null)));
        table.iceberg().updateSchema().addColumn("place", "zip", Types.StringType.get(), Expressions.lit("0815")).commit();
        Types.StructType zip = table.iceberg().schema().findType("place").asStructType();
        table.append(table.row(3L, key(zip, "Y", null)), table.row(11L, key(zip, "Z", "4711")), table.row(12L, null));
        table.vectors(Map.of(first, List.of(1L))).commit();
        table.finish();
    }

    /** Blobs of deletion vectors by Iceberg, and maps of 64-bit values by the library for bitmaps. */
    private static void vectors() throws IOException {
        Path directory = Files.createDirectories(Path.of("vectors"));
        Files.write(directory.resolve("empty.bin"), blob());
        Files.write(directory.resolve("alternating.bin"), blob(1, 3, 5, 7, 9));
        Files.write(directory.resolve("small_and_large.bin"), blob(100, 101, 2147483747L, 2147483748L));
        PositionDeleteIndex every = Deletes.toPositionIndex(CloseableIterable.empty());
        for (long high : new long[] {0, 1L << 32}) {
            every.delete(high + 5);
            every.delete(high + 7);
            LongStream.range(0, 5000).forEach(number -> every.delete(high + (1 << 16) + 2 * number));
            every.delete(high + (2 << 16) + 1, high + (2 << 16) + 65535);
        }
        Files.write(directory.resolve("every_container.bin"), every.serialize().array());
        map(directory.resolve("map_empty.bin"), LongStream.empty());
        map(directory.resolve("map_low.bin"), LongStream.range(0, 10));
        map(directory.resolve("map_spread.bin"), LongStream.range(0, 100).map(number -> (number / 10 << 32) + number % 10));
        map(directory.resolve("map_above_31_bits.bin"), LongStream.of(1, (1L << 63) + 1));
    }

    private static byte[] blob(long... positions) {
        return Deletes.toPositionIndex(CloseableIterable.withNoopClose(LongStream.of(positions).boxed().toList())).serialize().array();
    }

    private static void map(Path path, LongStream values) throws IOException {
        Roaring64NavigableMap map = new Roaring64NavigableMap();
        values.forEach(map::addLong);
        try (DataOutputStream output = new DataOutputStream(Files.newOutputStream(path))) {
            map.serializePortable(output);
        }
    }

    private static Map<String, String> version(int version) {
        return Map.of("format-version", String.valueOf(version));
    }

    private static Record[] numbered(ForeignTable table, int from, int to) {
        return LongStream.range(from, to).mapToObj(id -> table.row(id, "c" + id % 3, (double) id)).toArray(Record[]::new);
    }

    private static Record key(Schema schema, Object... values) {
        return key(schema.asStruct(), values);
    }

    private static Record key(Types.StructType type, Object... values) {
        return ForeignTable.record(type, values);
    }

    /** As Flink does it: new rows and the equality deletes of their keys in one commit. */
    private static void upsert(ForeignTable table, Schema key, Record... rows) throws IOException {
        DataFile added = table.data(rows);
        RowDelta delta = table.iceberg().newRowDelta().addRows(added);
        delta.addDeletes(table.equality(added, key, keys(key, rows))).commit();
    }

    private static void deleteKeys(ForeignTable table, Record[] rows, int[] deleted, String... columns) throws IOException {
        Schema key = table.iceberg().schema().select(columns);
        Record[] chosen = java.util.Arrays.stream(deleted).mapToObj(place -> rows[place]).toArray(Record[]::new);
        table.delete(table.equality(PLAIN, null, key, key, keys(key, chosen)));
    }

    private static Record[] keys(Schema key, Record... rows) {
        return java.util.Arrays.stream(rows)
                .map(row -> key(key, key.columns().stream().map(column -> row.getField(column.name())).toArray()))
                .toArray(Record[]::new);
    }
}
