"""INSERT, CTAS and `writeTo`: every reader returns the rows that the executors wrote."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table
from tableformat.keys.sort_marker import sorted_by
from tableformat.parquet.parquet_metrics import FIELD_ID_KEY
from tableformat.storage.location import local_path

SCHEMA = pa.schema(
    [pa.field("id1", pa.string(), nullable=False), pa.field("id2", pa.int64(), nullable=False), ("v", pa.float64())]
)


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    return lake.create_table((namespace, "t"), SCHEMA, key=["id1", "id2"])


def python_rows(table: Table) -> list[tuple[Any, ...]]:
    """The rows as Python reads them, sorted."""
    return sorted((tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist()), key=repr)


def spark_rows(spark: SparkSession, table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.table(f"lake.{table.name}").collect()), key=repr)


def parquet_files(table: Table) -> list[Path]:
    """The live data files."""
    paths = [local_path(path) for path in table.refresh().inspect.files()["file_path"].to_pylist()]
    return [Path(path) for path in paths if path is not None]


def test_files_are_sorted_by_key_with_marker(spark: SparkSession, table: Table) -> None:
    """RD-11: the footer's marker is the promise that readers search by."""
    spark.range(5000).selectExpr("concat('k', id % 7) id1", "5000 - id id2", "double(id) v").repartition(3).writeTo(
        f"lake.{table.name}"
    ).append()
    for path in parquet_files(table):
        rows = pq.read_table(path)
        assert rows.equals(rows.sort_by([("id1", "ascending"), ("id2", "ascending")]))
        assert sorted_by(pq.read_metadata(path).metadata) == (1, 2)
    assert len(python_rows(table)) == 5000


def test_key_order_of_text_is_by_utf8_bytes(spark: SparkSession, table: Table) -> None:
    """RD-1: above the basic plane the order of UTF-16 is another one."""
    spark.createDataFrame(
        [("\U0001f600", 1, 0.0), ("￿", 1, 0.0), ("é", 1, 0.0)], "id1 string, id2 long, v double"
    ).coalesce(1).writeTo(f"lake.{table.name}").append()
    [path] = parquet_files(table)
    assert pq.read_table(path)["id1"].to_pylist() == ["é", "￿", "\U0001f600"]
    table.delete_prefix({"id1": "￿"})
    assert [row[0] for row in python_rows(table)] == ["é", "\U0001f600"]
    assert [row[0] for row in spark_rows(spark, table)] == ["é", "\U0001f600"]


def test_bounds_and_counts_come_from_the_footer(spark: SparkSession, table: Table) -> None:
    spark.sql(f"INSERT INTO lake.{table.name} SELECT 'a', id, IF(id < 3, NULL, id / 2D) FROM range(10)")
    files = table.refresh().inspect.files()
    assert sum(files["record_count"].to_pylist()) == 10
    assert table.scan("id2 > 100").plan().tasks == ()
    assert sum(dict(counts)[3] for counts in files["null_value_counts"].to_pylist()) == 3


def test_every_type_round_trips(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(f"""
        CREATE TABLE lake.{namespace}.types (
            b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, dec9 DECIMAL(9,2), dec18 DECIMAL(18,3), dec38 DECIMAL(38,10),
            day DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, s STRING, bin BINARY,
            st STRUCT<x: INT, y: STRUCT<z: STRING>>, li ARRAY<INT>, ls ARRAY<STRUCT<q: DATE>>,
            m MAP<STRING, DOUBLE>, mm MAP<STRING, ARRAY<STRUCT<r: INT>>>)
    """)
    spark.sql(f"""
        INSERT INTO lake.{namespace}.types VALUES (
            true, 1, 2, 1.5, 2.5, 1234567.89, 12.345, 0.0000000001,
            DATE '1969-12-31', TIMESTAMP '2001-02-03 04:05:06.789', TIMESTAMP_NTZ '1960-01-01 00:00:00', 'é', X'00FF',
            struct(1, struct('z')), array(1, null),
            array(struct(DATE '2020-02-02')), map('k', 0.5), map('k', array(struct(7), null)))
    """)
    table = lake.load_table((namespace, "types"))
    [row] = table.scan().to_arrow().to_pylist()
    assert row == {
        "b": True,
        "i": 1,
        "l": 2,
        "f": 1.5,
        "d": 2.5,
        "dec9": Decimal("1234567.89"),
        "dec18": Decimal("12.345"),
        "dec38": Decimal("1E-10"),
        "day": date(1969, 12, 31),
        "ts": datetime(2001, 2, 3, 4, 5, 6, 789000, tzinfo=UTC),
        "ntz": datetime(1960, 1, 1),
        "s": "é",
        "bin": b"\x00\xff",
        "st": {"x": 1, "y": {"z": "z"}},
        "li": [1, None],
        "ls": [{"q": date(2020, 2, 2)}],
        "m": [("k", 0.5)],
        "mm": [("k", [{"r": 7}, None])],
    }
    assert spark.sql(f"SELECT mm['k'][0].r, ls[0].q FROM lake.{namespace}.types").collect()[0] == (7, date(2020, 2, 2))


def test_nested_fields_have_field_ids(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """Iceberg's readers find the elements of lists and maps by id as well."""
    spark.sql(f"CREATE TABLE lake.{namespace}.t (li ARRAY<STRUCT<q: INT>>, m MAP<STRING, ARRAY<INT>>)")
    spark.sql(f"INSERT INTO lake.{namespace}.t VALUES (array(struct(1)), map('k', array(1)))")
    table = lake.load_table((namespace, "t"))
    [path] = parquet_files(table)

    def ids(field: pa.Field) -> list[int]:
        children = [field.type.field(i) for i in range(field.type.num_fields)] if field.type.num_fields else []
        if pa.types.is_map(field.type):
            children = [field.type.key_field, field.type.item_field]
        return [int(field.metadata[FIELD_ID_KEY]), *(each for child in children for each in ids(child))]

    stored = [each for field in pq.read_schema(path) for each in ids(field)]
    assert stored == [1, 3, 4, 2, 5, 6, 7]
    assert {field.field_id for field in table.metadata.schema()._lazy_id_to_field.values()} == set(stored)


def test_uuid_and_fixed_columns(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    schema = pa.schema([("u", pa.uuid()), ("f", pa.binary(3))])
    table = lake.create_table((namespace, "t"), schema)
    spark.sql(f"INSERT INTO lake.{table.name} VALUES ('6BA7B810-9dad-11d1-80b4-00c04fd430c8', X'010203'), (NULL, NULL)")
    rows = table.refresh().scan().to_arrow()
    assert [None if value is None else str(value) for value in rows["u"].to_pylist()] == [
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        None,
    ]
    assert rows["f"].to_pylist() == [b"\x01\x02\x03", None]


def test_files_roll_at_the_target_size(spark: SparkSession, table: Table) -> None:
    spark.range(200_000).selectExpr("'a' id1", "id id2", "rand(1) v").coalesce(1).writeTo(f"lake.{table.name}").option(
        "target-file-size-bytes", str(400_000)
    ).append()
    files = table.refresh().inspect.files()
    assert len(files) > 2
    assert max(files["file_size_in_bytes"].to_pylist()) < 700_000
    assert sum(files["record_count"].to_pylist()) == 200_000


def test_unknown_option_error_suggests_the_nearest(spark: SparkSession, table: Table) -> None:
    with pytest.raises(
        AnalysisException, match=r"unknown option 'replace-prefx'.*Did you mean 'replace-prefix'"
    ) as error:
        spark.range(1).selectExpr("'a' id1", "id id2", "0D v").writeTo(f"lake.{table.name}").option(
            "replace-prefx", "id1"
        ).append()
    assert error.value.getCondition() == "TABLEFORMAT_UNKNOWN_OPTION"


def test_snapshot_properties_are_in_the_summary(spark: SparkSession, table: Table) -> None:
    spark.range(1).selectExpr("'a' id1", "id id2", "0D v").writeTo(f"lake.{table.name}").option(
        "snapshot-property.Job", "nightly"
    ).append()
    [summary] = table.refresh().inspect.snapshots()["summary"].to_pylist()
    assert dict(summary)["Job"] == "nightly"


def test_failed_insert_leaves_no_file_and_no_snapshot(spark: SparkSession, table: Table) -> None:
    with pytest.raises(Exception, match="no such row"):
        spark.range(20_000).selectExpr(
            "'a' id1", "IF(id = 19999, raise_error('no such row'), id) id2", "0D v"
        ).coalesce(1).writeTo(f"lake.{table.name}").append()
    assert table.refresh().snapshot_id is None
    location = local_path(table.location)
    assert location is not None
    assert list(Path(location).rglob("*.parquet")) == []


def test_null_in_a_key_column_is_refused(spark: SparkSession, table: Table) -> None:
    with pytest.raises(Exception, match=r"NOT_NULL|null"):
        spark.sql(f"INSERT INTO lake.{table.name} VALUES (NULL, 1, 0.5)")
    assert table.refresh().snapshot_id is None


def test_insert_into_time_travel_is_rejected(spark: SparkSession, table: Table) -> None:
    spark.sql(f"INSERT INTO lake.{table.name} VALUES ('a', 1, 0.5)")
    snapshot_id = table.refresh().snapshot_id
    with pytest.raises(AnalysisException):
        spark.sql(f"INSERT INTO lake.{table.name} VERSION AS OF {snapshot_id} VALUES ('a', 1, 0.5)")


@pytest.mark.since_spark("4.1", "INSERT of some of the columns")
def test_insert_by_name_uses_defaults_for_missing_columns(spark: SparkSession, table: Table) -> None:
    spark.sql(f"INSERT INTO lake.{table.name} (id2, id1) VALUES (1, 'a')")
    assert python_rows(table) == [("a", 1, None)]


@pytest.mark.since_spark("4.0", "a Parquet writer that fits Bloom filters to the values")
def test_bloom_filters_of_java_writer_prune_files(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """FM-27: every type as the bytes that Java stores, which has short decimals as integers."""
    columns = {
        "s": "concat('m-', id)",
        "n": "CAST(id AS INT)",
        "d": "date_add(DATE'2026-01-01', CAST(id AS INT))",
        "ts": "timestamp_micros(id * 1000003)",
        "short": "CAST(id / 100 AS DECIMAL(9, 2))",
        "long": "CAST(id / 100 AS DECIMAL(18, 2))",
        "wide": "CAST(id / 100 AS DECIMAL(30, 2))",
        "b": "CAST(concat('b-', id) AS BINARY)",
    }
    name = f"lake.{namespace}.filtered"
    enabled = ", ".join(f"'write.parquet.bloom-filter-enabled.column.{column}' = 'true'" for column in columns)
    chosen = ", ".join(f"{expression} AS {column}" for column, expression in columns.items())
    spark.sql(f"CREATE TABLE {name} TBLPROPERTIES ({enabled}) AS SELECT {chosen} FROM range(0, 0)")
    for file in range(4):
        spark.sql(f"INSERT INTO {name} SELECT {chosen} FROM range({file}, 2000, 4, 1)")
    table = lake.load_table((namespace, "filtered"))
    sizes = pq.read_metadata(parquet_files(table)[0]).row_group(0).column(0)
    assert 0 < sizes.bloom_filter_length < 4_096, "as large as 500 values need"
    rows = table.scan("n < 40").to_arrow().sort_by("n").to_pylist()
    for column in columns:
        where = [EqualTo(column, row[column]) for row in rows]
        assert [table.scan(each).to_arrow()["n"].to_pylist() for each in where] == [[row["n"]] for row in rows], column
        assert sum(len(table.scan(each).plan().tasks) for each in where) <= len(rows) + 4, column
    for number in (3, 1_999):
        assert spark.sql(f"SELECT n FROM {name} WHERE s = 'm-{number}' AND wide = {number / 100}").collect() == [
            (number,)
        ]
    assert spark.sql(f"SELECT n FROM {name} WHERE s = 'm-2000'").collect() == []


def test_unsorted_table_keeps_the_written_row_order(spark: SparkSession, table: Table) -> None:
    """FM-28: no sort in the plan, no marker in the footer, and deletes apply to the rows."""
    table.set_properties({"tableformat.write.sort": "none"})
    rows = spark.range(2_000).selectExpr("concat('m-', id % 7) id1", "(id * 7919) % 2000 id2", "id / 2 v").coalesce(1)
    rows.writeTo(f"lake.{table.name}").append()
    [path] = parquet_files(table)
    metadata = pq.read_metadata(path)
    assert sorted_by(metadata.metadata) is None
    stored = table.refresh().scan().to_arrow()
    assert stored["id2"].to_pylist() == [(number * 7919) % 2000 for number in range(2_000)]
    spark.sql(f"DELETE FROM lake.{table.name} WHERE id1 = 'm-3'")
    assert len(python_rows(table)) == 2_000 - len(range(3, 2_000, 7))
    assert spark_rows(spark, table) == python_rows(table)


def output_of_stages(spark: SparkSession) -> dict[int, tuple[int, int]]:
    """Rows and bytes that each stage wrote, as Spark's UI shows them."""
    context, gateway = spark.sparkContext._jsc.sc(), spark.sparkContext._gateway
    assert gateway is not None
    context.listenerBus().waitUntilEmpty()
    stages = context.statusStore().stageList(
        None, False, False, gateway.new_array(gateway.jvm.double, 0), gateway.jvm.java.util.ArrayList()
    )
    found = (stages.apply(n) for n in range(stages.size()))
    return {stage.stageId(): (stage.outputRecords(), stage.outputBytes()) for stage in found}


def test_tasks_report_the_rows_and_bytes_that_they_write(spark: SparkSession, table: Table) -> None:
    """SP-51: Spark's output metrics, of inserts and of statements that change rows."""
    for statement, rows in (
        (f"INSERT INTO lake.{table.name} SELECT 'a', id, 0 FROM range(0, 5000, 1, 2)", 5000),
        (f"UPDATE lake.{table.name} SET v = 1 WHERE id2 % 1000 = 7 AND v < 1", 5),
    ):
        before = set(output_of_stages(spark))
        spark.sql(statement)
        written = [output for stage, output in output_of_stages(spark).items() if stage not in before]
        assert sum(records for records, _ in written) == rows
        newest = spark.sql(f"SELECT summary FROM lake.{table.name}.snapshots ORDER BY committed_at DESC").first()
        assert newest is not None
        assert 0 < sum(size for _, size in written) <= int(newest.summary["added-files-size"])
