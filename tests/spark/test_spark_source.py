"""`format("tableformat")`, incremental reads, and the options of reads and writes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from session_settings import settings

from tableformat import Catalog, Table
from tableformat.storage.location import local_path

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Id 1, then 2, then 3, each in a snapshot."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    for number in (1, 2, 3):
        created.append(pa.table({"id": [number]}, schema=SCHEMA))
    return created


def snapshots(table: Table) -> list[int]:
    found: list[int] = table.refresh().inspect.snapshots()["snapshot_id"].to_pylist()
    return found


def test_session_settings_replace_missing_options(spark: SparkSession, table: Table) -> None:
    """SP-56."""
    name, setting = f"lake.{table.name}", "spark.datasource.tableformat."
    spark.conf.set(f"{setting}snapshot-id", str(snapshots(table)[1]))
    try:
        assert sorted(row.id for row in spark.read.format("tableformat").load(name).collect()) == [1, 2]
        spark.conf.unset(f"{setting}snapshot-id")
        spark.conf.set(f"{setting}snapshot-property.foo", "bar")
        spark.range(4, 5).write.format("tableformat").mode("append").save(name)
    finally:
        spark.conf.unset(f"{setting}snapshot-property.foo")
        spark.conf.unset(f"{setting}snapshot-id")
    assert spark.sql(f"SELECT summary['foo'] FROM {name}.snapshots ORDER BY committed_at DESC").head()[0] == "bar"


def test_iceberg_session_settings_replace_missing_options(spark: SparkSession, table: Table) -> None:
    """SP-64: they were passed over without a word."""
    name, setting = f"lake.{table.name}", "spark.sql.iceberg."
    values = {
        "compression-codec": "gzip",
        "snapshot-property.team": "calendars",
        "read.split-size": "9",
        "vectorization.enabled": "false",
    }
    with settings(spark, {f"{setting}{key}": value for key, value in values.items()}):
        spark.range(4, 5).writeTo(name).append()
        spark.range(5, 6).writeTo(name).option("compression-codec", "snappy").append()
        spark.sql(f"UPDATE {name} SET id = 6 WHERE id = 5")
        spark.sql(f"DELETE FROM {name} WHERE id = 1")
        tasks = spark.table(name).rdd.getNumPartitions()
        assert tasks > spark.read.option("split-size", 1 << 30).table(name).rdd.getNumPartitions()
        assert sorted(row.id for row in spark.table(name).collect()) == [2, 3, 4, 6]
    found = spark.sql(f"SELECT summary['team'] FROM {name}.snapshots ORDER BY committed_at").collect()
    assert [row[0] for row in found] == [None, None, None, *["calendars"] * 4]
    files = [pq.ParquetFile(local_path(task.file.file_path)) for task in table.refresh().iceberg.scan().plan_files()]
    codecs = {file.read()["id"][0].as_py(): file.metadata.row_group(0).column(0).compression for file in files}
    assert {key: codecs[key] for key in (4, 6)} == {4: "GZIP", 6: "GZIP"}
    for key, value in (("read.split-size", "0"), ("distribution-mode", "sideways")):
        with settings(spark, {f"{setting}{key}": value}), pytest.raises(AnalysisException, match=value):
            spark.sql(f"INSERT INTO {name} SELECT max(id) + 1 FROM {name}")


def test_session_catalog_cannot_be_replaced(spark: SparkSession) -> None:
    """SP-59: otherwise its tables would be hidden, and USING parquet would create tables of ours."""
    jvm = spark._jvm
    options = jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap.empty()
    with pytest.raises(AnalysisException, match=r"set spark\.sql\.defaultCatalog"):
        jvm.tableformat.spark.LakeCatalog().initialize("spark_catalog", options)


def test_iceberg_catalog_options(spark: SparkSession, table: Table) -> None:
    """SP-54: after USE, a name without a namespace belongs to the default namespace. SP-65: options with defaults for
    new tables and views, and options that name Java classes, used to be ignored."""
    namespace, prefix = table.name.split(".")[0], "spark.sql.catalog."
    options = {row.key: row.value for row in spark.sql("SET").collect() if row.key.startswith(f"{prefix}lake")}
    for key, value in options.items():
        if key == f"{prefix}lake" or key.startswith(f"{prefix}lake."):
            spark.conf.set(key.replace(f"{prefix}lake", f"{prefix}lake_of_one", 1), value)
    given = {
        "default-namespace": namespace,
        "table-default.format-version": "3",
        "table-default.write.delete.mode": "copy-on-write",
        "table-default.kept": "by the owner",
        "table-override.write.update.mode": "copy-on-write",
        "view-default.team": "calendars",
        "use-nullable-query-schema": "false",
        "cache-enabled": "false",
        "hadoop.fs.s3a.endpoint": "nowhere",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    }
    for key, value in given.items():
        spark.conf.set(f"{prefix}lake_of_one.{key}", value)

    def properties(name: str) -> dict[str, str]:
        return {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}

    modes = {f"write.{verb}.mode" for verb in ("delete", "update", "merge")}
    try:
        spark.sql("USE lake_of_one")
        assert sorted(row.id for row in spark.sql("SELECT id FROM t").collect()) == [1, 2, 3]
        said = "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
        spark.sql("CREATE TABLE made (id BIGINT)")
        spark.sql(f"CREATE TABLE selected {said} AS SELECT 1 id")
        assert not spark.table("selected").schema["id"].nullable
        found = {name: properties(name) for name in ("made", "selected")}
        assert {each["format-version"] for each in found.values()} == {"3"}
        assert {name: found["made"][name] for name in modes & found["made"].keys()} == {
            "write.delete.mode": "copy-on-write",
            "write.update.mode": "copy-on-write",
        }
        assert {name: found["selected"][name] for name in modes & found["selected"].keys()} == {
            "write.delete.mode": "merge-on-read",
            "write.update.mode": "copy-on-write",
        }
        spark.sql("ALTER TABLE t SET TBLPROPERTIES ('kept' = 'mine')")
        spark.sql("REPLACE TABLE t (id BIGINT)")
        replaced = properties("t")
        assert replaced["format-version"] == "2"
        assert replaced["kept"] == "mine"
        assert replaced["write.update.mode"] == "copy-on-write"
        spark.sql("CREATE VIEW v AS SELECT 1 id")
        assert properties("v")["team"] == "calendars"
    finally:
        spark.sql("USE spark_catalog.default")


def test_load_by_table_name_or_location(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """SP-25."""
    name, place = f"lake.{table.name}", local_path(table.location)
    source = spark.read.format("tableformat")
    for path in (name, str(place), table.location, f"{place}/"):
        assert sorted(row.id for row in source.load(path).collect()) == [1, 2, 3]
    assert source.load(f"{place}#snapshots").count() == 3
    tag = snapshots(table)[0]
    table.create_tag("first", tag)
    assert [row.id for row in source.load(f"{table.location}#tag_first").collect()] == [1]
    for option, value in (("tag", "first"), ("snapshot-id", tag)):
        read = spark.read.format("tableformat").option(option, value)
        assert [row.id for row in read.load(name).collect()] == [1]
    rows = spark.range(4, 5)
    rows.write.format("tableformat").mode("append").save(name)
    rows.selectExpr("id + 1 id").write.format("tableformat").mode("append").saveAsTable(name)
    stream = spark.readStream.format("tableformat").load(name)
    target = f"lake.{table.name.rpartition('.')[0]}.copy"
    spark.sql(f"CREATE TABLE {target} (id BIGINT)")
    for number, start in enumerate(("toTable", "start")):
        query = stream.writeStream.format("tableformat").option("checkpointLocation", str(tmp_path / start))
        query = query.trigger(availableNow=True).outputMode("append")
        (query.toTable(target) if number == 0 else query.option("path", target).start()).awaitTermination()
    assert sorted(row.id for row in spark.table(target).collect()) == sorted([1, 2, 3, 4, 5] * 2)
    rows.write.format("tableformat").mode("overwrite").save(name)
    assert [row.id for row in spark.table(name).collect()] == [4]
    for path, message in (
        ("/no/such/place", "no table is at /no/such/place"),
        ("spark_catalog.db.t", "is not a catalog of tableformat"),
        ("lake.db.none", "lake.db.none|TABLE_OR_VIEW_NOT_FOUND"),
    ):
        with pytest.raises(AnalysisException, match=message):
            spark.read.format("tableformat").load(path)


@pytest.mark.since_spark("4.0", "versionAsOf and timestampAsOf of readers")
def test_load_honours_time_travel_options_of_spark(spark: SparkSession, table: Table) -> None:
    """SP-25: they were passed over, and current rows were read."""
    name, first = f"lake.{table.name}", table.refresh().inspect.snapshots().to_pylist()[0]
    table.create_tag("first", first["snapshot_id"])
    moment = first["committed_at"].isoformat(sep=" ")
    for options in ({"versionAsOf": first["snapshot_id"]}, {"versionAsOf": "first"}, {"timestampAsOf": moment}):
        read = spark.read.format("tableformat").options(**options)
        assert [row.id for row in read.load(name).collect()] == [1]
    both = {"versionAsOf": first["snapshot_id"], "start-snapshot-id": first["snapshot_id"]}
    with pytest.raises(AnalysisException, match="start-snapshot-id and the chosen snapshot"):
        spark.read.format("tableformat").options(**both).load(name).collect()
    with pytest.raises(AnalysisException, match="both version and timestamp"):
        spark.read.format("tableformat").options(versionAsOf="first", timestampAsOf=moment).load(name)


def test_incremental_read_returns_rows_appended_between_snapshots(spark: SparkSession, table: Table) -> None:
    """SP-26: rows as they were appended, regardless of later changes; without the rows of the first snapshot."""
    name, ids = f"lake.{table.name}", snapshots(table)
    table.refresh().delete("id = 2 AND id > 0", mode="scan")

    def read(**options: int) -> list[int]:
        reader = spark.read
        for option, value in options.items():
            reader = reader.option(option.replace("_", "-"), value)
        frame = reader.table(name)
        assert frame.count() == len(frame.collect())
        return sorted(row.id for row in frame.collect())

    assert read(start_snapshot_id=ids[0]) == [2, 3]
    assert read(start_snapshot_id=ids[0], end_snapshot_id=ids[1]) == [2]
    assert read(start_snapshot_id=ids[2]) == []
    assert read() == [1, 3]
    joined = spark.read.option("start-snapshot-id", ids[0]).table(name).join(spark.table(name), "id", "left_anti")
    assert [row.id for row in joined.collect()] == [2]
    table.refresh().upsert(pa.table({"id": [1]}, schema=SCHEMA))
    for options, message in (
        ({"start_snapshot_id": ids[0]}, "replaces rows, which a read of appended rows cannot show"),
        ({"end_snapshot_id": ids[0]}, "requires start-snapshot-id"),
        ({"start_snapshot_id": ids[2], "end_snapshot_id": ids[0]}, "is not an ancestor of"),
        ({"start_snapshot_id": 7}, "no snapshot 7"),
        ({"start_snapshot_id": ids[0], "snapshot_id": ids[1]}, "both choose a state"),
    ):
        with pytest.raises(AnalysisException, match=message):
            read(**options)


def test_options_are_applied_or_rejected(spark: SparkSession, table: Table) -> None:
    """SP-27, SP-57."""
    name = f"lake.{table.name}"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('read.split.target-size'='9', 'read.split.open-file-cost'='1')")
    assert spark.table(name).rdd.getNumPartitions() > 3
    assert spark.read.option("split-size", 1 << 30).table(name).rdd.getNumPartitions() == 1
    small = spark.read.option("split-size", 100).option("file-open-cost", 1).option("lookback", 5).table(name)
    assert small.rdd.getNumPartitions() > 3
    assert sorted(row.id for row in small.collect()) == [1, 2, 3]
    with pytest.raises(AnalysisException, match="number of bytes, at least 1"):
        spark.read.option("split-size", 0).table(name).collect()
    frame = spark.range(9, 10)
    frame.writeTo(name).options(
        **{"fanout-enabled": "true", "write-format": "parquet", "compression-level": "3"}
    ).append()
    assert spark.table(name).count() == 4
    for option, value, message in (("write-format", "orc", "must be 'parquet'"),):
        with pytest.raises(AnalysisException, match=message):
            frame.writeTo(name).option(option, value).append()


@pytest.mark.since_spark("4.0", "a rule before Spark looks at the columns of a write")
def test_merge_schema_option_adds_columns(spark: SparkSession, table: Table) -> None:
    """SP-82: Spark held the columns against the table's before the option was read."""
    name, before = f"lake.{table.name}", spark.table(f"lake.{table.name}").columns
    rows = spark.range(20, 21)
    rows.selectExpr("id", "1 a").writeTo(name).option("mergeSchema", "true").append()
    rows.selectExpr("id", "2L a", "2 b").write.mode("append").option("merge-schema", "TRUE").saveAsTable(name)
    rows.selectExpr("id", "'c' c").write.format("tableformat").option("mergeSchema", "true").mode("append").save(name)
    assert spark.table(name).columns == [*before, "a", "b", "c"]
    found = spark.table(name).where("id = 20").select("a", "b", "c").collect()
    assert sorted(map(str, map(tuple, found))) == ["(1, None, None)", "(2, 2, None)", "(None, None, 'c')"]
    with pytest.raises(AnalysisException):
        rows.selectExpr("id", "1 d").writeTo(name).option("mergeSchema", "false").append()
    with pytest.raises(AnalysisException, match=r"`?a`?.*(STRING|string)"):
        rows.selectExpr("id", "'x' a", "1 d").writeTo(name).option("mergeSchema", "true").append()
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.spark.auto-schema-evolution.enabled' = 'false')")
    with pytest.raises(AnalysisException, match="auto-schema-evolution"):
        rows.selectExpr("id", "1 d").writeTo(name).option("mergeSchema", "true").append()
    assert spark.table(name).columns == [*before, "a", "b", "c"]


@pytest.mark.since_spark("4.0", "a rule before Spark looks at the columns of a write")
def test_merge_schema_widens_but_never_narrows_columns(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-82: the same as in Iceberg; Spark 4.2 and newer would have narrowed them, which was rejected."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, f DOUBLE, d DECIMAL(6,2), s STRUCT<a: INT>, i INT NOT NULL)")
    narrow = spark.sql("SELECT 1 id, CAST(1.5 AS FLOAT) f, CAST(2 AS DECIMAL(4,2)) d, CAST(3 AS SMALLINT) i")
    narrow.writeTo(name).option("mergeSchema", "true").append()
    wide = spark.sql("SELECT 2 id, named_struct('z', 'n', 'a', 5L) s, CAST(9 AS BIGINT) i, CAST(2 AS DECIMAL(8,2)) d")
    wide.writeTo(name).option("mergeSchema", "true").overwrite(col("id") == 2)
    assert spark.table(name).dtypes == [
        *(("id", "bigint"), ("f", "double"), ("d", "decimal(8,2)"), ("s", "struct<a:bigint,z:string>"), ("i", "bigint"))
    ]
    assert not spark.table(name).schema["i"].nullable
    found = [
        tuple(row) for row in spark.table(name).selectExpr("id", "f", "d", "s.a", "s.z", "i").orderBy("id").collect()
    ]
    assert found == [(1, 1.5, 2, None, None, 3), (2, None, 2, 5, "n", 9)]


@pytest.mark.since_spark("4.0", "a rule before Spark looks at the columns of a write")
def test_session_setting_merges_schema_if_table_accepts_any_schema(spark: SparkSession, table: Table) -> None:
    """SP-82: Iceberg's setting and Iceberg's property, together."""
    name, rows = f"lake.{table.name}", spark.range(20, 21).selectExpr("id", "1 a")
    spark.conf.set("spark.sql.iceberg.merge-schema", "true")
    try:
        with pytest.raises(AnalysisException):
            rows.writeTo(name).append()
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")
        with pytest.raises(AnalysisException):
            rows.writeTo(name).option("mergeSchema", "false").append()
        rows.writeTo(name).append()
        spark.table(name).writeTo(name).append()
    finally:
        spark.conf.unset("spark.sql.iceberg.merge-schema")
    assert [row.a for row in spark.table(name).where("id = 20").collect()] == [1, 1]
    spark.sql(f"UPDATE {name} SET a = 2 WHERE id = 20")
    assert [row.a for row in spark.table(name).where("id = 20").collect()] == [2, 2]


@pytest.mark.since_spark("4.2", "mergeSchema of insertInto is Spark's own")
def test_insert_into_with_merge_schema_adds_columns(spark: SparkSession, table: Table) -> None:
    """SP-82: not through SQL's WITH, which takes our options."""
    name = f"lake.{table.name}"
    spark.range(20, 21).selectExpr("id", "1 a").write.option("mergeSchema", "true").insertInto(name)
    assert spark.table(name).columns == ["id", "a"]
    with pytest.raises(AnalysisException, match="WITH SCHEMA EVOLUTION"):
        spark.sql(f"INSERT INTO {name} WITH ('mergeSchema' = 'true') (id) VALUES (1)")


def test_stream_rows_are_matched_to_columns_by_name(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path
) -> None:
    """SP-58: Spark passes on the rows of a stream unchanged. They used to be written by position, regardless of their
    types."""
    source, target = f"lake.{namespace}.source", f"lake.{namespace}.target"
    spark.sql(f"CREATE TABLE {target} (id BIGINT NOT NULL, s STRUCT<a: INT, b: STRING>, data STRING, n INT)")
    spark.sql(f"CREATE TABLE {source} (data STRING, s STRUCT<b: STRING, a: INT>, id INT, more INT)")
    spark.sql(f"INSERT INTO {source} VALUES ('a', named_struct('b', 'c', 'a', 2), 1, 7)")

    def run(*columns: str, **options: str) -> None:
        writer = spark.readStream.table(source).selectExpr(*columns).writeStream.options(**options)
        checkpoint = str(tmp_path / f"{len(list(tmp_path.iterdir()))}")
        writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).toTable(target).awaitTermination()

    run("data", "s", "id")
    for columns, message in (
        (("id", "more"), "more"),
        (("data",), "id"),
        (("id", "data n"), "n"),
        (("IF(id > 5, id, NULL) id",), "(?i)null"),
    ):
        with pytest.raises(StreamingQueryException, match=message):
            run(*columns)
    assert [tuple(row) for row in spark.table(target).collect()] == [(1, (2, "c"), "a", None)]
    run("more", "CAST(id AS BIGINT) + 1 id", mergeSchema="true")
    assert [tuple(row) for row in spark.table(target).orderBy("id").collect()] == [
        *((1, (2, "c"), "a", None, None), (2, None, None, None, 7))
    ]
