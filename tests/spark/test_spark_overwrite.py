"""Partitioned writes and overwrites: partition values are the same as in Python, and only the named rows are
replaced."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr

from tableformat import Catalog, Table

EVENTS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("v", pa.string())])

TYPES = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("s", pa.string()),
        ("bin", pa.binary()),
        ("d9", pa.decimal128(9, 2)),
        ("d38", pa.decimal128(38, 5)),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("ntz", pa.timestamp("us")),
        ("b", pa.bool_()),
        ("f", pa.float32()),
    ]
)


@pytest.fixture
def events(spark: SparkSession, lake: Catalog, namespace: str) -> Table:
    """Two days of two rows each, partitioned by day."""
    table = lake.create_table((namespace, "events"), EVENTS, key=["id"], partition_by=["day"])
    spark.sql(f"""
        INSERT INTO lake.{table.name} VALUES (1, DATE '2024-01-01', 'a'), (2, DATE '2024-01-01', 'b'),
            (3, DATE '2024-01-02', 'c'), (4, DATE '2024-01-02', 'd')
    """)
    return table.refresh()


@pytest.fixture
def dynamic(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    yield
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def ids(spark: SparkSession, table: Table) -> list[str]:
    """Spark's rows, which are Python's."""
    found = sorted(f"{row.id}{row.v}" for row in spark.table(f"lake.{table.name}").collect())
    assert found == sorted(f"{r['id']}{r['v']}" for r in table.refresh().scan().to_arrow().to_pylist())
    return found


TRANSFORMS = {
    "buckets": [f"bucket(7, {c})" for c in ("i", "l", "s", "bin", "d9", "d38", "day", "ts", "ntz")],
    "truncated": [f"truncate(3, {c})" for c in ("i", "l", "s", "bin", "d9", "d38")],
    "times": ["year(day)", "month(ts)", "day(ntz)"],
    "more times": ["month(day)", "day(ts)", "hour(ntz)"],
    "other times": ["day(day)", "hour(ts)", "year(ntz)"],
    "last times": ["year(ts)", "month(ntz)"],
    "values": ["i", "s", "bin", "d9", "day", "ts", "b", "f"],
}


@pytest.mark.parametrize("partition_by", TRANSFORMS.values(), ids=TRANSFORMS)
def test_partition_values_agree_with_python(
    spark: SparkSession, lake: Catalog, namespace: str, partition_by: list[str]
) -> None:
    by_python = lake.create_table((namespace, "python"), TYPES, partition_by=partition_by)
    by_spark = lake.create_table((namespace, "spark"), TYPES, partition_by=partition_by)
    rows = spark.sql("""
        SELECT CAST(n * 37 - 300 AS INT) i, n * 1000003 - 9000000 l, repeat(chr(233 + n % 5), 1 + n % 4) s,
            unhex(hex(n * 77)) bin, CAST(n * 1.37 - 5 AS DECIMAL(9,2)) d9, CAST(n * -3.00007 AS DECIMAL(38,5)) d38,
            date_add(DATE '1969-11-30', CAST(n * 9 AS INT)) day, timestamp_micros(n * 86399000001 - 500000000000) ts,
            CAST(timestamp_micros(n * 3599000001 - 50000000000) AS TIMESTAMP_NTZ) ntz, n % 2 = 0 b,
            CAST(n % 3 / 10 AS FLOAT) f
        FROM range(24) AS t(n)
        UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    """)
    rows.writeTo(f"lake.{by_spark.name}").append()
    by_python.append(by_spark.refresh().scan().to_arrow())

    def partitions(table: Table) -> list[tuple[object, int]]:
        found = table.refresh().inspect.partitions()
        return sorted(zip(found["partition"].to_pylist(), found["record_count"].to_pylist(), strict=True), key=repr)

    assert partitions(by_spark) == partitions(by_python)
    assert by_spark.scan().count() == 25


def test_write_creates_one_file_per_partition(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    table = lake.create_table((namespace, "t"), EVENTS, key=["id"], partition_by=["bucket(5, id)", "month(day)"])
    spark.sql(f"""
        INSERT INTO lake.{table.name} SELECT id, date_add(DATE '2024-01-01', CAST(id % 60 AS INT)), 'v' FROM range(2000)
    """)
    files = table.refresh().inspect.files()
    assert len(files) == len(table.inspect.partitions()) == 10
    assert table.scan().count() == 2000


def test_range_distribution_gives_files_disjoint_keys(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    table = lake.create_table((namespace, "t"), EVENTS, key=["id"])
    spark.range(4000).selectExpr("(id * 7919) % 4000 id", "DATE '2024-01-01' day", "'v' v").repartition(4).writeTo(
        f"lake.{table.name}"
    ).option("distribution-mode", "range").append()
    bounds = [table.scan(f"id = {n}").plan().tasks for n in table.refresh().scan().to_arrow()["id"].to_pylist()[:5]]
    assert [len(tasks) for tasks in bounds] == [1] * 5


def test_partition_functions_are_available_in_sql(spark: SparkSession) -> None:
    row = spark.sql("""
        SELECT lake.system.bucket(16, 34), lake.system.truncate(10, -1), lake.system.days(DATE '1970-01-03'),
            lake.system.bucket(16, CAST(NULL AS BIGINT)), lake.system.years(CAST(NULL AS DATE)),
            lake.system.truncate(3, 'iceberg'), lake.system.hours(TIMESTAMP '1970-01-01 02:30:00')
    """).collect()[0]
    assert tuple(row) == (3, -10, date(1970, 1, 3), None, None, "ice", 2)


def test_insert_overwrite_replaces_all_rows(spark: SparkSession, events: Table) -> None:
    spark.sql(f"INSERT OVERWRITE lake.{events.name} VALUES (9, DATE '2024-01-02', 'z')")
    assert ids(spark, events) == ["9z"]
    assert len(events.inspect.delete_files()) == 0


def test_insert_overwrite_of_a_static_partition(spark: SparkSession, events: Table) -> None:
    spark.sql(f"INSERT OVERWRITE lake.{events.name} PARTITION (day = DATE '2024-01-01') SELECT 9L, 'z'")
    assert ids(spark, events) == ["3c", "4d", "9z"]
    assert len(events.inspect.delete_files()) == 0


def test_dynamic_overwrite_replaces_only_written_partitions(spark: SparkSession, events: Table, dynamic: None) -> None:
    spark.sql(f"INSERT OVERWRITE lake.{events.name} VALUES (9, DATE '2024-01-02', 'z'), (8, DATE '2024-01-03', 'y')")
    assert ids(spark, events) == ["1a", "2b", "8y", "9z"]
    assert len(events.inspect.delete_files()) == 0


def test_dynamic_overwrite_of_an_unpartitioned_table_replaces_all(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
    table = lake.create_table((namespace, "t"), EVENTS, key=["id"])
    for n in (1, 2):
        spark.sql(f"SELECT {n}L id, DATE '2024-01-02' day, 'z' v").writeTo(f"lake.{table.name}").overwritePartitions()
    assert ids(spark, table) == ["2z"]


def test_overwrite_by_condition(spark: SparkSession, events: Table) -> None:
    from pyspark.sql.functions import col

    spark.sql("SELECT 9L id, DATE '2024-01-02' day, 'z' v").writeTo(f"lake.{events.name}").overwrite(col("id") >= 3)
    assert ids(spark, events) == ["1a", "2b", "9z"]


def test_overwrites_of_different_partitions_do_not_conflict(spark: SparkSession, events: Table) -> None:
    frame = spark.sql("SELECT 9L id, DATE '2024-01-02' day, 'z' v")
    _with_commit_meanwhile(
        spark,
        events,
        "VALUES (5L, DATE '2024-01-01', 'e')",
        lambda source: frame.unionByName(source).writeTo(f"lake.{events.name}").overwritePartitions(),
    )
    assert ids(spark, events) == ["1a", "2b", "5e", "9z"]


def test_overwrite_conflicts_with_concurrent_append(spark: SparkSession, events: Table) -> None:
    frame = spark.sql("SELECT 9L id, DATE '2024-01-02' day, 'z' v")
    with pytest.raises(Exception, match="was added") as error:
        _with_commit_meanwhile(
            spark,
            events,
            "VALUES (5L, DATE '2024-01-02', 'e')",
            lambda source: frame.unionByName(source).writeTo(f"lake.{events.name}").overwritePartitions(),
        )
    assert isinstance(error.value, AnalysisException)
    assert error.value.getCondition() == "TABLEFORMAT_COMMIT_CONFLICT"
    assert error.value.getSqlState() == "40001"
    assert ids(spark, events) == ["1a", "2b", "3c", "4d", "5e"]
    assert len(_files(events)) == len(events.inspect.files())


@pytest.mark.parametrize(
    ("meanwhile", "level", "message", "dynamically"),
    [
        ("INSERT INTO {t} VALUES (5, DATE '2024-01-02', 'e')", "serializable", "was added", False),
        ("INSERT INTO {t} VALUES (5, DATE '2024-01-02', 'e')", "snapshot", None, False),
        ("INSERT INTO {t} VALUES (5, DATE '2024-01-01', 'e')", "serializable", None, True),
        ("DELETE FROM {t} WHERE id = 3", "snapshot", "deletes rows of", True),
        ("DELETE FROM {t} WHERE day = DATE '2024-01-02'", "snapshot", "removed from the table", False),
    ],
)
def test_overwrite_is_validated_from_a_snapshot(
    spark: SparkSession, events: Table, meanwhile: str, level: str, message: str | None, dynamically: bool
) -> None:
    """SP-47: although the statement itself reads the rows that were added after the snapshot."""
    since = events.view.snapshot.snapshot_id
    spark.sql(meanwhile.format(t=f"lake.{events.name}"))
    before = ids(spark, events)
    rows = spark.sql("SELECT 9L id, DATE '2024-01-02' day, 'z' v").writeTo(f"lake.{events.name}")

    def overwrite() -> None:
        if dynamically:
            rows.overwritePartitions()
        else:
            rows.overwrite(col("day") == date(2024, 1, 2))

    rows.option("isolation-level", level).option("validate-from-snapshot-id", str(since))
    if message is not None:
        with pytest.raises(AnalysisException, match=message):
            overwrite()
        assert ids(spark, events) == before
        rows.option("validate-from-snapshot-id", str(events.refresh().view.snapshot.snapshot_id))
    overwrite()
    others = [each for each in before if each[-1] in "ab" or (each == "5e" and "01-01" in meanwhile)]
    assert ids(spark, events) == [*others, "9z"]


def test_rows_are_written_by_an_older_partition_spec(spark: SparkSession, events: Table) -> None:
    """SP-48."""
    with events.update_spec() as change:
        change.remove_field("day")
        change.add_field("id", "bucket[2]")
    default = events.refresh().iceberg.spec().spec_id
    name = f"lake.{events.name}"
    spark.sql("SELECT 5L id, DATE '2024-01-02' day, 'e' v").writeTo(name).append()
    rows = spark.sql("SELECT 9L id, DATE '2024-01-02' day, 'z' v").writeTo(name).option("output-spec-id", "0")
    rows.append()
    specs = spark.sql(f"SELECT id, _spec_id spec, _partition.day day FROM {name} WHERE id >= 5 ORDER BY id").collect()
    assert [(row.id, row.spec, row.day) for row in specs] == [(5, default, None), (9, 0, date(2024, 1, 2))]
    rows.overwritePartitions()
    assert ids(spark, events) == ["1a", "2b", "9z"]
    with pytest.raises(AnalysisException, match="no partition spec 7, only 0"):
        rows.option("output-spec-id", "7").append()


def _files(table: Table) -> list[str]:
    from pathlib import Path

    from tableformat.storage.location import local_path

    location = local_path(table.location)
    assert location is not None
    return [str(path) for path in (Path(location) / "data").rglob("*.parquet")]


def _with_commit_meanwhile(spark: SparkSession, table: Table, values: str, write: object) -> None:
    """Run a write whose source, while it is read, commits other rows to the table."""
    from pyspark.sql import DataFrame

    rows = [row.asDict() for row in spark.sql(f"SELECT * FROM {values} AS t(id, day, v)").collect()]
    warehouse, name = str(table.catalog.iceberg.properties["warehouse"]), table.name  # type: ignore[union-attr]

    def commit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from urllib.parse import unquote

        from tableformat import open_catalog

        for batch in batches:
            with open_catalog(unquote(warehouse.removeprefix("file://"))) as catalog:
                other = catalog.load_table(name)
                other.append(pa.Table.from_pylist(rows, schema=other.schema))
            yield batch.slice(0, 0)

    source: DataFrame = spark.range(1).selectExpr("id", "DATE '2024-01-01' day", "'' v").coalesce(1)
    write(source.mapInArrow(commit, "id long, day date, v string"))  # type: ignore[operator]


@pytest.mark.since_spark("4.0", "an overwrite's condition goes to the catalog whole")
def test_overwrite_by_inexact_condition_is_rejected(spark: SparkSession, events: Table) -> None:
    rows = spark.table(f"lake.{events.name}").limit(0)
    with pytest.raises(AnalysisException, match=r"cannot be overwritten.*DELETE FROM") as caught:
        rows.writeTo(f"lake.{events.name}").overwrite(expr("id % 2 = 0"))
    assert caught.value.getCondition() == "TABLEFORMAT_UNSUPPORTED"
