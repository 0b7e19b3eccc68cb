"""Tables that Python and Spark wrote, read by Spark and by every reader that does not support range deletes; tables of
other writers, read by Spark."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import duckdb_iceberg_env
import pyarrow as pa
import pytest
from foreign_tables import EVERY_TABLE, ForeignTable, each_of, written_here
from long_forms import crossed
from moved_tables import moved_copy
from other_readers import COLUMNS, QUERIES, READERS, Answer, Answers, Row, outcome
from pyspark.sql import SparkSession

import tableformat as tf
from tableformat.testing.key_order import fingerprint

SCHEMA = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("num_cal", pa.int32(), nullable=False),
        ("payload", pa.string()),
    ]
)
ALL_ROWS: tuple[Row, ...] = tuple(
    (id1, id2, number, f"{id1}{id2}.{number}") for id1 in "ABC" for id2 in (1, 2) for number in range(3)
)
LIVE_ROWS = tuple(row for row in ALL_ROWS if row[:2] != ("A", 1) and row[2] != 0 and row[3] != "B2.2")
LATER_ROWS = tuple(
    (*row[:3], "late" if row[:3] == ("C", 1, 1) else row[3]) for row in LIVE_ROWS if row[:3] != ("B", 1, 2)
)
KINDS = {(2, "RANGE_DELETES_PARQUET"), (2, "PARQUET")}


def written_by_python(table: tf.Table, _spark: SparkSession) -> None:
    table.append(pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in ALL_ROWS], schema=SCHEMA))
    table.delete("payload = 'B2.2'", mode="scan")
    table.delete_prefix({"id1": "A", "id2": 1})
    table.delete("num_cal = 0", mode="equality")


def written_by_spark(table: tf.Table, spark: SparkSession) -> None:
    rows = spark.createDataFrame(list(ALL_ROWS), "id1 string, id2 long, num_cal int, payload string")
    rows.coalesce(1).writeTo(f"lake.{table.name}").append()
    spark.sql(f"DELETE FROM lake.{table.name} WHERE payload LIKE '%B2.2'")
    spark.sql(f"DELETE FROM lake.{table.name} WHERE id1 = 'A' AND id2 = 1")
    spark.sql(f"DELETE FROM lake.{table.name} WHERE num_cal = 0")


def read_with_spark(spark: SparkSession, table: tf.Table) -> Answers:
    name = f"lake.{table.name}"
    texts = {query: text.format(table=name) for query, text in QUERIES.items()}
    return {query: Answer(tuple(map(tuple, spark.sql(text).collect()))) for query, text in texts.items()}


def outcomes(spark: SparkSession, table: tf.Table, rows: Sequence[Row]) -> dict[str, str]:
    """The outcome of reading the table with each reader."""
    assert duckdb_iceberg_env.is_complete(), "python tests/integration/duckdb_iceberg_env.py makes what is missing"
    location = table.refresh().iceberg.metadata_location
    answers = {name: read(location, None) for name, read in READERS.items()}
    answers["spark"] = read_with_spark(spark, table)
    return {name: outcome(answer, rows) for name, answer in answers.items()}


def kinds(table: tf.Table) -> set[tuple[int, str]]:
    files = table.refresh().inspect.delete_files().to_pylist()
    return {(file["content"], file["file_format"]) for file in files}


@pytest.mark.parametrize(
    ("partition_by", "write"),
    crossed([(), ("id1",), ("bucket(2, id2)",)], [written_by_python, written_by_spark]),
    ids=lambda value: value.__name__ if callable(value) else "-".join(value) or "plain",
)
@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long)])
def test_converted_tables_are_read_by_all_readers(
    spark: SparkSession, lake: tf.Catalog, namespace: str, version: int, write: object, partition_by: tuple[str, ...]
) -> None:
    """RD-6, DA-1, DA-7: before conversion other readers reject the table. After conversion, and after more row deletes
    of Spark, all agree."""
    if not duckdb_iceberg_env.is_complete():
        pytest.skip("DuckDB with its Iceberg extension is missing: python tests/integration/duckdb_iceberg_env.py")
    table = lake.create_table(
        (namespace, "t"),
        SCHEMA,
        key=["id1", "id2", "num_cal"],
        partition_by=partition_by,
        properties={"format-version": str(version)},
    )
    assert callable(write)
    write(table, spark)
    rows_kind = (1, "PUFFIN" if version == 3 else "PARQUET")
    assert kinds(table) == {*KINDS, rows_kind}
    before = outcomes(spark, table, LIVE_ROWS)
    assert before["spark"] == "right"
    assert "refused" in before["pyiceberg"]
    assert "refused" in before["polars"]
    assert "refused" in before["duckdb"]
    table.maintenance.convert_deletes()
    assert kinds(table) == {rows_kind}
    assert set(outcomes(spark, table, LIVE_ROWS).values()) == {"right"}
    spark.sql(f"DELETE FROM lake.{table.name} WHERE substring(payload, 1, 4) = 'B1.2'")
    spark.sql(f"UPDATE lake.{table.name} SET payload = 'late' WHERE payload = 'C1.1'")
    assert kinds(table) == {rows_kind}
    assert set(outcomes(spark, table, LATER_ROWS).values()) == {"right"}


NESTED_DEFAULTS = "v3_nested_defaults"


@each_of(table for table in EVERY_TABLE if table.name != NESTED_DEFAULTS)
def test_tables_of_other_writers_are_read_like_in_python(
    spark: SparkSession, lake: tf.Catalog, namespace: str, tmp_path: Path, foreign: ForeignTable
) -> None:
    """DA-1 to DA-4, DA-7, SP-97: every snapshot, row by row as Python reads it from the table's location."""
    original = foreign.open()
    table = lake.register_table((namespace, "t"), moved_copy(foreign.directory, tmp_path / "t"))
    kept = {path.name for path in (foreign.directory / "metadata").iterdir()}
    snapshots = [each.snapshot_id for each in table.metadata.snapshots if Path(each.manifest_list).name in kept]
    assert table.snapshot_id in snapshots
    for snapshot_id in snapshots:
        rows = spark.sql(f"SELECT * FROM lake.{namespace}.t VERSION AS OF {snapshot_id}").toArrow()
        expected = original.scan(snapshot_id=snapshot_id).to_arrow()
        assert rows.column_names == expected.column_names
        names = expected.column_names
        assert fingerprint(rows.to_pylist(), names) == fingerprint(expected.to_pylist(), names)
    current = spark.table(f"lake.{namespace}.t")
    assert current.count() == original.scan().count()
    spark.sql(f"DELETE FROM lake.{namespace}.t WHERE id = 1 OR id IS NULL")
    assert current.sparkSession.table(f"lake.{namespace}.t").where("id > 0").count() == original.scan("id > 1").count()


def test_default_of_struct_field_is_rejected_until_files_are_rewritten(
    spark: SparkSession, lake: tf.Catalog, namespace: str, tmp_path: Path
) -> None:
    """SP-97"""
    foreign = written_here(NESTED_DEFAULTS)
    table = lake.register_table((namespace, "t"), moved_copy(foreign.directory, tmp_path / "t"))
    name = f"lake.{namespace}.t"
    with pytest.raises(Exception, match=r"'place\.zip' has a default value, and .*01-data\.parquet"):
        spark.table(name).collect()
    assert {row.id for row in spark.table(name).select("id").collect()} == {1, 3, 10, 11, 12}
    table.maintenance.compact()
    expected = foreign.rows(table.iceberg.schema())
    found = spark.table(name).toArrow().to_pylist()
    assert fingerprint(found, ["id", "place"]) == fingerprint(expected, ["id", "place"])


def test_filters_and_aggregates_use_defaults_for_older_files(
    spark: SparkSession, lake: tf.Catalog, namespace: str, tmp_path: Path
) -> None:
    """SP-97, SP-2, SP-4"""
    foreign = written_here("v3_defaults")
    table = lake.register_table((namespace, "t"), moved_copy(foreign.directory, tmp_path / "t"))
    rows = foreign.rows(table.iceberg.schema())
    found = spark.table(f"lake.{namespace}.t")
    for column, value in (
        ("level", 7),
        ("remark", "none"),
        ("price", Decimal("1.50")),
        ("is_open", True),
        ("level", None),
    ):
        expected = sorted(row["id"] for row in rows if row[column] == value)
        assert expected
        assert sorted(row.id for row in found.where(found[column].eqNullSafe(value)).select("id").collect()) == expected
    levels = [row["level"] for row in rows if row["level"] is not None]
    aggregates = spark.sql(f"SELECT min(level), max(level), count(level), count(*) FROM lake.{namespace}.t")
    assert tuple(aggregates.collect()[0]) == (min(levels), max(levels), len(levels), len(rows))
