"""CALL lake.system.create_changelog_view: copied rows are left out; updates and net changes, with and without a key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def make(lake: Catalog, namespace: str, *, key: tuple[str, ...] = ("id",), **properties: str) -> Table:
    return lake.create_table((namespace, "t"), SCHEMA, key=key, properties=properties)


def view(spark: SparkSession, table: Table, arguments: str = "") -> list[tuple[Any, ...]]:
    """Rows of the view in the order of their commits, without the snapshots' ids."""
    [row] = spark.sql(f"CALL lake.system.create_changelog_view('{table.name}'{arguments})").collect()
    found = spark.table(row.changelog_view)
    assert found.columns[-3:] == ["_change_type", "_change_ordinal", "_commit_snapshot_id"]
    order = [found.columns[-2], *found.columns[:-3], "_change_type"]
    return [tuple(row)[:-1] for row in found.orderBy(*order).collect()]


@pytest.mark.parametrize("mode", ["merge-on-read", pytest.param("copy-on-write", marks=pytest.mark.long)])
def test_copied_rows_are_not_reported_as_changes(spark: SparkSession, lake: Catalog, namespace: str, mode: str) -> None:
    """SP-34."""
    table = make(lake, namespace, key=(), **{"write.delete.mode": mode, "write.update.mode": mode})
    name = f"lake.{table.name}"
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (1, 'a'), (2, 'b')")
    spark.sql(f"UPDATE {name} SET v = 'c' WHERE id = 2")
    first = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots").first()[0]
    rows = view(spark, table, f", options => map('start-snapshot-id', '{first}')")
    assert rows == [(2, "b", "DELETE", 0), (2, "c", "INSERT", 0)]
    raw = spark.read.option("start-snapshot-id", first).table(f"{name}.changes")
    assert (raw.count() > 2) is (mode == "copy-on-write")
    assert view(spark, table)[:2] == [(1, "a", "INSERT", 0)] * 2


def test_updates_are_detected_by_identifier_columns(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-34."""
    table = make(lake, namespace)
    table.append(pa.table({"id": [1, 2], "v": ["a", "b"]}, schema=SCHEMA))
    table.upsert(pa.table({"id": [2, 3], "v": ["B", "c"]}, schema=SCHEMA))
    expected = [
        (1, "a", "INSERT", 0),
        (2, "b", "INSERT", 0),
        (2, "B", "UPDATE_AFTER", 1),
        (2, "b", "UPDATE_BEFORE", 1),
        (3, "c", "INSERT", 1),
    ]
    assert view(spark, table, ", compute_updates => true") == expected
    assert view(spark, table, ", identifier_columns => array('id')") == expected
    assert view(spark, table, ", 'my_view', NULL, NULL, array('`id`')") == expected
    assert spark.table("my_view").where("_change_type = 'UPDATE_AFTER'").count() == 1
    by_value = view(spark, table, ", identifier_columns => array('v')")
    assert {row[2] for row in by_value} == {"INSERT", "DELETE"}


def test_net_changes_count_equal_rows(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-34."""
    table = make(lake, namespace, key=())
    for ids in ([1, 1, 1], [2], [3]):
        table.append(pa.table({"id": ids, "v": ["x"] * len(ids)}, schema=SCHEMA))
    table.delete("id = 2", mode="scan")
    table.delete("id = 1", mode="scan")
    table.append(pa.table({"id": [1, 1], "v": ["x"] * 2}, schema=SCHEMA))
    assert view(spark, table, ", net_changes => true") == [(3, "x", "INSERT", 2), *[(1, "x", "INSERT", 5)] * 2]
    ids = table.inspect.snapshots()["snapshot_id"].to_pylist()
    options = f", options => map('start-snapshot-id', '{ids[0]}', 'end-snapshot-id', '{ids[4]}')"
    assert view(spark, table, f"{options}, net_changes => true") == [
        (3, "x", "INSERT", 1),
        *[(1, "x", "DELETE", 3)] * 3,
    ]


def test_invalid_changelog_view_arguments_are_rejected(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    table = make(lake, namespace, key=())
    table.append(pa.table({"id": [1, 1], "v": ["a", "b"]}, schema=SCHEMA))
    table.overwrite(pa.table({"id": [1], "v": ["c"]}, schema=SCHEMA))
    for arguments, message in (
        ("compute_updates => true", "has no key"),
        ("compute_updates => true, identifier_columns => array('id'), net_changes => true", "cannot be combined"),
        ("identifier_columns => array('idd')", "Did you mean 'id'"),
        ("options => map('start-snapshot', '1')", "Did you mean"),
        ("options => map('end-snapshot-id', '1')", "not an ancestor"),
    ):
        with pytest.raises(AnalysisException, match=message):
            view(spark, table, f", {arguments}")
    # Spark 3.5 has no specific Python exception for an error in an executor.
    with pytest.raises((PySparkException, Py4JJavaError), match="several rows with the same"):
        view(spark, table, ", identifier_columns => array('id')")
