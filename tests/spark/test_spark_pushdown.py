"""The parts of a query that are pushed down to the planner and the Parquet reader, and that pushdown never changes the
rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tableformat import Catalog, Table


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def files_read(frame: DataFrame) -> int:
    return len(frame.select("_file").distinct().collect())


@contextmanager
def conf(spark: SparkSession, **settings: str) -> Iterator[None]:
    names = {name.replace("__", "."): value for name, value in settings.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@pytest.fixture(scope="module")
def numbers(lake: Catalog) -> Table:
    """For tests that only read."""
    lake.create_namespace("pushdown")
    return make_numbers(lake, "pushdown")


def make_numbers(lake: Catalog, namespace: str) -> Table:
    """Ten files of ten rows each: n from 0 to 99, half of n, a text, a day, a moment, a price."""
    schema = pa.schema(
        [
            pa.field("n", pa.int64(), nullable=False),
            ("half", pa.float64()),
            ("text", pa.string()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("price", pa.decimal128(9, 2)),
        ]
    )
    table = lake.create_table((namespace, "numbers"), schema, key=["n"])
    for start in range(0, 100, 10):
        values = list(range(start, start + 10))
        table.append(
            pa.table(
                {
                    "n": values,
                    "half": [value / 2 for value in values],
                    "text": [f"t{value:03}" for value in values],
                    "day": [date(2024, 1, 1 + start // 10)] * 10,
                    "at": [datetime(2024, 1, 1, start // 10, tzinfo=UTC)] * 10,
                    "price": [Decimal(value) / 4 for value in values],
                },
                schema=schema,
            )
        )
    return table


FILTERS = [
    ("n = 42", 1, 1),
    ("42 = n", 1, 1),
    ("n >= 85", 2, 15),
    ("n < 10 OR n > 95", 2, 14),
    ("n IN (1, 2, 51)", 2, 3),
    ("NOT (n < 90)", 1, 10),
    ("half > 49.2", 1, 1),
    ("text = 't007'", 1, 1),
    ("text LIKE 't01%'", 1, 10),
    ("day = DATE '2024-01-03'", 1, 10),
    ("at < TIMESTAMP '2024-01-01 02:00:00'", 2, 20),
    ("price = 10.25", 1, 1),
    ("n <=> 5", 1, 1),
    ("n = 3 AND length(text) = 4", 1, 1),
    ("text IS NULL", 0, 0),
]


def test_filters_prune_files(spark: SparkSession, numbers: Table) -> None:
    for where, file_count, row_count in FILTERS:
        frame = spark.table(f"lake.{numbers.name}").where(where)
        assert frame.count() == row_count, where
        assert files_read(frame) == file_count, where
        assert frame.select("n").rdd.getNumPartitions() <= file_count, where


def test_filters_prune_row_groups(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """The Parquet reader decodes only the row groups that may match."""
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), ("text", pa.string())])
    table = lake.create_table((namespace, "t"), schema, key=["n"], properties={"write.parquet.row-group-limit": "1000"})
    table.append(pa.table({"n": np.arange(20_000), "text": ["x"] * 20_000}, schema=schema))
    frame = spark.table(f"lake.{table.name}").where("n = 5500")
    assert [row.n for row in frame.collect()] == [5500]
    scanned = spark.table(f"lake.{table.name}").where("n = 5500 OR n = -1").select("n", "_pos")
    output = scanned._jdf.queryExecution()
    output.executedPlan().executeCollect()
    metrics = output.executedPlan().collectLeaves().head().metrics()
    assert metrics.apply("numOutputRows").value() < 2_000


def test_filter_by_name_after_a_rename_finds_rows_of_old_files(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
    """Spark finds columns by id but row groups by name: after two columns swapped their names the old file's column
    of the filtered name is the other one."""
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False), ("b", pa.int32())])
    table = lake.create_table((namespace, "t"), schema, properties={"write.parquet.row-group-limit": "10"})
    table.append(pa.table({"a": np.arange(100, dtype="i4"), "b": np.arange(10_000, 10_100, dtype="i4")}, schema=schema))
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        spark.sql(f"ALTER TABLE lake.{namespace}.t RENAME COLUMN {old} TO {new}")
    renamed = pa.schema([pa.field("b", pa.int32(), nullable=False), ("a", pa.int32())])
    table.refresh().append(pa.table({"b": [7], "a": [70]}, schema=renamed))
    frame = spark.table(f"lake.{namespace}.t")
    assert sorted(row.a for row in frame.where("b < 3").collect()) == [10_000, 10_001, 10_002]
    assert sorted(row.b for row in frame.where("a >= 10098").collect()) == [98, 99]
    assert sorted(row.a for row in frame.where("b = 7").collect()) == [70, 10_007]


@pytest.mark.parametrize("widened", [pytest.param(False, marks=pytest.mark.long), True])
def test_swapped_columns_of_different_types_are_read_by_field_id(
    spark: SparkSession, lake: Catalog, namespace: str, widened: bool
) -> None:
    """SP-1: Spark finds a column of an old file by id, and reads it as the type that the column of its name has now."""
    schema = pa.schema(
        [("s", pa.string()), ("n", pa.int32()), ("list", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())])))]
    )
    table = lake.create_table((namespace, "t"), schema)
    table.append(pa.table({"s": ["a", "b"], "n": [1, 2], "list": [[{"x": 5, "y": "five"}], None]}, schema=schema))
    for path in ("", "list.element."):
        one, other = ("s", "n") if not path else ("x", "y")
        for old, new in ((one, "t"), (other, one), ("t", other)):
            spark.sql(f"ALTER TABLE lake.{namespace}.t RENAME COLUMN {path}{old} TO {new}")
    if widened:
        spark.sql(f"ALTER TABLE lake.{namespace}.t ALTER COLUMN s TYPE BIGINT")
    frame = spark.table(f"lake.{namespace}.t")
    rows = [row.asDict(True) for row in frame.orderBy("s").collect()]
    assert rows == [{"n": "a", "s": 1, "list": [{"y": 5, "x": "five"}]}, {"n": "b", "s": 2, "list": None}]
    assert rows == table.refresh().scan().to_arrow().to_pylist()
    assert [row.n for row in frame.where("s = 2").select("n").collect()] == ["b"]
    assert [row.s for row in frame.where("n = 'a'").select("s").collect()] == [1]


@pytest.mark.parametrize("case_sensitive", ["true", "false"])
def test_column_names_that_differ_only_in_case(
    spark: SparkSession, lake: Catalog, namespace: str, case_sensitive: str
) -> None:
    """SP-63: a table may have them; a case-sensitive session reads it, and any other session rejects it."""
    schema = pa.schema([("a", pa.int32()), ("A", pa.string())])
    table = lake.create_table((namespace, "t"), schema)
    table.append(pa.table({"a": [1, 2], "A": ["x", "y"]}, schema=schema))
    spark.conf.set("spark.sql.caseSensitive", case_sensitive)
    try:
        frame = spark.table(f"lake.{namespace}.t")
        if case_sensitive == "true":
            assert sorted(map(tuple, frame.collect())) == [(1, "x"), (2, "y")]
            assert [row.A for row in frame.where("a = 2").select("A").collect()] == ["y"]
            assert [row.a for row in frame.where("A = 'x'").select("a").collect()] == [1]
        else:
            with pytest.raises(AnalysisException, match=r"COLUMN_ALREADY_EXISTS|spark\.sql\.caseSensitive"):
                frame.collect()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_files_without_field_ids_are_read_by_the_name_mapping(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.string())]))])
    table = lake.create_table((namespace, "t"), schema)
    path = f"{table.location.removeprefix('file://')}/imported.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3], "s": [{"x": "a"}, {"x": "b"}, None]}, schema=schema), path)
    table.iceberg.add_files([f"file://{path}"])
    spark.sql(f"ALTER TABLE lake.{namespace}.t RENAME COLUMN id TO number")
    spark.sql(f"ALTER TABLE lake.{namespace}.t ADD COLUMN extra STRING")
    frame = spark.table(f"lake.{namespace}.t")
    assert [row.asDict(True) for row in frame.where("number >= 2").orderBy("number").collect()] == [
        {"number": 2, "s": {"x": "b"}, "extra": None},
        {"number": 3, "s": None, "extra": None},
    ]
    table.refresh().delete("number = 2", mode="equality")
    assert [row.number for row in frame.sparkSession.table(f"lake.{namespace}.t").orderBy("number").collect()] == [1, 3]


def test_counts_and_bounds_come_from_metadata(spark: SparkSession, numbers: Table) -> None:
    frame = spark.sql(
        f"SELECT count(*), count(half), min(n), max(n), max(day), min(at), max(price) FROM lake.{numbers.name}"
    )
    assert "LocalTableScan" in plan_of(frame)
    assert tuple(frame.collect()[0]) == (
        100,
        100,
        0,
        99,
        date(2024, 1, 10),
        datetime(2024, 1, 1, 0, 0),
        Decimal("24.75"),
    )


def test_count_of_rows_needs_no_scan_if_positions_of_deleted_rows_are_known(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
    """SP-4: rows that range and equality deletes reach are known when the rows are read."""
    numbers = make_numbers(lake, namespace)
    numbers.delete_range(lower=(5,), upper=(25,))
    numbers.delete("n IN (1, 99)", mode="equality")
    frame = spark.sql(f"SELECT count(*) FROM lake.{numbers.name}")
    assert "LocalTableScan" not in plan_of(frame)
    assert frame.collect()[0][0] == 78
    numbers.maintenance.convert_deletes()
    frame = spark.sql(f"SELECT count(*) FROM lake.{numbers.name}")
    assert "LocalTableScan" in plan_of(frame)
    assert frame.collect()[0][0] == 78


def test_aggregates_of_booleans_floats_and_struct_fields_from_metadata(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
    """SP-4: for files of Spark, which count NaNs; for columns with zeros and NaNs only the exact values."""
    spark.sql(f"CREATE TABLE lake.{namespace}.t (b BOOLEAN, f FLOAT, d DOUBLE, z DOUBLE, s STRUCT<n: INT, x: DOUBLE>)")
    spark.sql(
        f"INSERT INTO lake.{namespace}.t VALUES (true, 1.5, double('infinity'), 0, named_struct('n', 3, 'x', 2.5)), "
        "(false, NULL, -2.25, -1, NULL), (NULL, -0.5, 7, double('-0.0'), named_struct('n', NULL, 'x', double('NaN')))"
    )
    text = "SELECT max(b), min(b), count(b), max(f), min(f), max(d), min(d), max(s.n), count(s.n), count(s.x), min(z)"
    frame = spark.sql(f"{text} FROM lake.{namespace}.t")
    assert "LocalTableScan" in plan_of(frame)
    assert tuple(frame.collect()[0]) == (True, False, 2, 1.5, -0.5, float("inf"), -2.25, 3, 1, 2, -1.0)
    for function, answer in (("max(s.x)", "NaN"), ("min(s.x)", "2.5"), ("max(z)", "0.0")):
        frame = spark.sql(f"SELECT string({function}) FROM lake.{namespace}.t")
        assert "LocalTableScan" not in plan_of(frame)
        assert frame.collect()[0][0] in (answer, f"-{answer}")
    [nans, *bounds] = spark.sql(
        "SELECT sum(readable_metrics.`s.x`.nan_value_count), min(readable_metrics.`s.x`.lower_bound), "
        f"max(readable_metrics.`s.x`.upper_bound) FROM lake.{namespace}.t.files"
    ).collect()[0]
    assert (nans, *bounds) == (1, 2.5, 2.5)


def test_nan_comparisons_are_resolved_by_partitions(spark: SparkSession, namespace: str) -> None:
    """SP-3, SP-41, SP-51: Spark asks no row, and the plan has Iceberg's words."""
    name = f"lake.{namespace}.floats"
    spark.sql(f"CREATE TABLE {name} (n BIGINT, x DOUBLE) PARTITIONED BY (x)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 1.5), (2, double('NaN')), (3, NULL), (4, double('infinity'))")
    asked = {
        "x = double('NaN')": ("is_nan(x)", [2]),
        "x <> double('NaN')": ("NOT (is_nan(x))", [1, 4]),
        "x < double('NaN')": ("x < NaN", [1, 4]),
        "x IN (1.5D, double('NaN'))": ("x IN (1.5, NaN)", [1, 2]),
    }
    for where, (words, expected) in asked.items():
        frame = spark.sql(f"SELECT n FROM {name} WHERE {where}")
        assert words in plan_of(frame)
        assert "Filter (" not in plan_of(frame)
        assert sorted(row.n for row in frame.collect()) == expected
    spark.sql(f"DELETE FROM {name} WHERE x = double('NaN')")
    assert sorted(row.n for row in spark.table(name).collect()) == [1, 3, 4]


def test_plan_and_commit_report_metrics(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-51: the numbers of Spark's UI, and the filters of EXPLAIN."""
    name = f"lake.{make_numbers(lake, namespace).name}"
    frame = spark.sql(f"SELECT n FROM {name} WHERE n > 50 AND day IS NOT NULL")
    assert ", filters=n > 50, day IS NOT NULL," in plan_of(frame)
    frame.collect()
    metrics = frame._jdf.queryExecution().executedPlan().collectLeaves().head().metrics()
    names = ("resultDataFiles", "totalDataManifest", "scannedDataManifests", "skippedDataManifests")
    result, total, scanned, skipped = (metrics.apply(each).value() for each in names)
    assert result == files_read(frame)
    assert total == scanned + skipped
    assert metrics.apply("totalPlanningDuration").value() > 0
    if not spark.version.startswith("3."):
        written = spark.sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 7")
        made = written._jdf.queryExecution().executedPlan().commandPhysicalPlan().metrics()
        assert [made.apply(each).value() for each in ("addedRecords", "removedDataFiles")] == [7, 0]


def test_filter_resolved_by_files_is_not_evaluated_on_rows(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-41: by partition and by bounds, also with deletes; no row of a completely deleted file is returned."""
    numbers = make_numbers(lake, namespace)
    name = f"lake.{numbers.name}"
    for where, is_decided in (("n >= 50", True), ("n > 50", False), ("day = DATE '2024-01-03' AND n < 40", True)):
        frame = spark.sql(f"SELECT count(*), min(n), max(price) FROM {name} WHERE {where}")
        assert ("LocalTableScan" in plan_of(frame)) == is_decided
        rows = spark.sql(f"SELECT n FROM {name} WHERE {where}")
        assert ("Filter (" in plan_of(rows)) != is_decided
        assert frame.collect()[0][0] == rows.count()
    numbers.delete("n IN (50, 99)", mode="scan")
    frame = spark.sql(f"SELECT count(n), min(n) FROM {name} WHERE n >= 40")
    assert "LocalTableScan" in plan_of(frame)
    assert tuple(frame.collect()[0]) == (58, 40)
    assert [tuple(row) for row in spark.sql(f"SELECT min(n), max(n) FROM {name} WHERE n >= 50").collect()] == [(51, 98)]
    numbers.delete_range(lower=(60,), upper=(80,))
    shown = spark.sql(f"SELECT n FROM {name} WHERE n >= 75 AND _deleted").collect()
    assert sorted(row.n for row in shown) == [75, 76, 77, 78, 79, 99]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT max(text) FROM {}",
        "SELECT count(*) FROM {} WHERE n > 50",
        "SELECT count(DISTINCT n) FROM {}",
        "SELECT day, count(*) FROM {} GROUP BY day ORDER BY day",
        "SELECT sum(n) FROM {}",
        "SELECT max(n + 1) FROM {}",
    ],
)
def test_other_aggregates_read_rows(spark: SparkSession, numbers: Table, query: str) -> None:
    found = [tuple(row) for row in spark.sql(query.format(f"lake.{numbers.name}")).collect()]
    spark.createDataFrame(numbers.scan().to_arrow()).createOrReplaceTempView("expected_rows")
    assert found == [tuple(row) for row in spark.sql(query.format("expected_rows")).collect()]


def test_join_keys_prune_files_at_runtime(spark: SparkSession, numbers: Table) -> None:
    """The key values of a small table are passed to the planner when they are known."""
    spark.createDataFrame([(3, "x"), (4, "y"), (44, "x")], "k long, tag string").createOrReplaceTempView("small")
    query = f"SELECT n FROM lake.{numbers.name} JOIN small ON n = k WHERE tag = 'x'"
    with conf(
        spark,
        spark__sql__optimizer__dynamicPartitionPruning__enabled="true",
        spark__sql__optimizer__dynamicPartitionPruning__reuseBroadcastOnly="false",
        spark__sql__optimizer__dynamicPartitionPruning__fallbackFilterRatio="100",
    ):
        frame = spark.sql(query)
        assert sorted(row.n for row in frame.collect()) == [3, 44]
        assert "dynamicpruning" in plan_of(frame).lower()


def test_nested_columns_are_pruned(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    schema = pa.schema([("s", pa.struct([("x", pa.int64()), ("y", pa.string())])), ("v", pa.int64())])
    table = lake.create_table((namespace, "t"), schema)
    table.append(pa.table({"s": [{"x": 1, "y": "a"}, None], "v": [1, 2]}, schema=schema))
    frame = spark.table(f"lake.{namespace}.t").select("s.x")
    assert "s#" in plan_of(frame)
    assert "struct<x:bigint>" in str(
        frame._jdf.queryExecution().executedPlan().collectLeaves().head().schema().simpleString()
    )
    assert [row.x for row in frame.collect()] == [1, None]


def test_partition_column_of_imported_hive_files_is_read(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """DA-6: files of Hive tables lack the partition column; its value is in the table's metadata."""
    schema = pa.schema([("id", pa.int64()), ("country", pa.string()), ("day", pa.date32())])
    table = lake.create_table((namespace, "t"), schema, partition_by=["country"])
    table.append(pa.table({"id": [1], "country": ["de"], "day": [date(2024, 1, 1)]}, schema=schema))
    rewrite_without(table, "country")
    frame = spark.table(f"lake.{namespace}.t")
    table.refresh().append(pa.table({"id": [2], "country": ["fr"], "day": [None]}, schema=schema))
    found = spark.table(f"lake.{namespace}.t").orderBy("id").collect()
    assert [(row.id, row.country, row.day) for row in found] == [(1, "de", date(2024, 1, 1)), (2, "fr", None)]
    assert [row.id for row in frame.where("country = 'de'").collect()] == [1]


def rewrite_without(table: Table, column: str) -> None:
    """Replace the table's only file by one that lacks the column and has no field ids."""
    table.set_properties(**{"schema.name-mapping.default": table.iceberg.schema().name_mapping.model_dump_json()})
    path = table.inspect.data_files()["file_path"].to_pylist()[0].removeprefix("file://")
    rows = pq.read_table(path, partitioning=None).drop_columns([column]).replace_schema_metadata(None)
    bare = rows.cast(pa.schema([field.remove_metadata() for field in rows.schema]))
    pq.write_table(bare, path)


@pytest.mark.parametrize(
    ("partition_by", "where", "file_count"),
    [
        ("bucket(4, text)", "lake.system.bucket(4, text) = 2", 1),
        ("bucket(4, text)", "lake.system.bucket(4, text) IN (2, 3)", 2),
        ("bucket(4, text)", "lake.system.bucket(3, text) = 2", 4),
        ("days(at)", "lake.system.days(at) = DATE '2024-01-03'", 1),
        ("days(at)", "lake.system.hours(at) < 473352 + 24", 1),
        ("truncate(10, n)", "lake.system.truncate(10, n) <= 10", 2),
        ("truncate(10, n)", "lake.system.truncate(10, n) <= 10 AND n < 30", 2),
    ],
)
@pytest.mark.since_spark("4.0", "= and <= of the catalog's functions are left to it whole")
def test_catalog_functions_prune_files(
    spark: SparkSession, namespace: str, partition_by: str, where: str, file_count: int
) -> None:
    """SP-46: and what the partitions decide is asked of no row."""
    name = f"lake.{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} PARTITIONED BY ({partition_by}) AS SELECT n, 't' || n text, "
        "TIMESTAMP '2024-01-01' + make_interval(0, 0, 0, n div 10) at FROM (SELECT explode(sequence(0, 39)) n)"
    )
    frame = spark.table(name).where(where)
    assert files_read(frame) == file_count
    assert ("Filter (" in plan_of(frame)) == ("bucket(3" in where or "hours" in where)
