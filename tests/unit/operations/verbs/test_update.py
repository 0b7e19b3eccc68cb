"""`update`: matching rows get new values, in one snapshot."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from long_forms import every
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import (
    InvalidArgumentError,
    RowsRefusedError,
    SchemaMismatchError,
    UncoveredRowsError,
    UnknownColumnError,
    UnknownOptionError,
)

SCHEMA = pa.schema(
    [("id", pa.int64()), ("a", pa.int32()), ("x", pa.float64()), ("text", pa.string()), ("day", pa.date32())]
)
DAY = dt.date(2026, 1, 1)
SMALL = '{"type": "lt", "term": "a", "value": 100}'


@pytest.fixture(params=["2", "3"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id"], properties={"format-version": request.param})
    for first in (0, 3):
        numbers = [first, first + 1, first + 2]
        table.append(pa.table([numbers, numbers, numbers, ["t"] * 3, [DAY] * 3], names=SCHEMA.names))
    table.delete_prefix({"id": 1})
    return table


def stored(table: tf.Table, *columns: str) -> list[tuple[Any, ...]]:
    rows = table.refresh().scan(columns=["id", *columns]).to_arrow().sort_by("id").to_pylist()
    return [tuple(row.values()) for row in rows]


def test_expressions_use_the_old_values_of_the_row(table: tf.Table) -> None:
    result = table.update("id < 4", set={"a": "a + 10", "x": "a * 1.5", "text": "text || '-' || id", "day": None})
    assert (result.deleted_row_count, result.added_row_count) == (3, 3)
    changed = [(i, i + 10, i * 1.5, f"t-{i}", None) for i in (0, 2, 3)]
    assert stored(table, "a", "x", "text", "day") == [*changed, (4, 4, 4.0, "t", DAY), (5, 5, 5.0, "t", DAY)]
    assert [row["operation"] for row in table.inspect.snapshots().to_pylist()][-1] == "overwrite"


def test_plain_values_are_not_parsed_as_expressions(table: tf.Table) -> None:
    table.update("true", set={"a": 7, "x": 0.5, "text": "'quoted'", "day": dt.date(2020, 2, 2)})
    assert stored(table, "a", "x", "text", "day") == [
        (i, 7, 0.5, "quoted", dt.date(2020, 2, 2)) for i in (0, 2, 3, 4, 5)
    ]
    table.update("id = 2", set={"text": "NULL"})
    assert stored(table, "text")[1] == (2, None)


def test_update_sees_earlier_changes_of_its_transaction(table: tf.Table) -> None:
    with table.transaction() as tx:
        tx.append(pa.table({"id": [9], "a": pa.array([9], pa.int32())}))
        tx.update("id >= 5", set={"a": "a + 1"})
        tx.update("id >= 5", set={"a": "a * 2"})
        tx.delete_prefix({"id": 0})
    assert stored(table, "a") == [(2, 2), (3, 3), (4, 4), (5, 12), (9, 20)]


@pytest.mark.parametrize("change", ["delete", "update", "upsert"])
def test_a_concurrent_change_is_not_lost(table: tf.Table, change: str) -> None:
    """CP-5, CP-6: the update is made again of the rows that are there then."""
    other = table.catalog.load_table("db.t")
    if change == "delete":
        other.delete_prefix({"id": 4})
    elif change == "update":
        other.update("id = 4", set={"a": 50})
    else:
        other.upsert(pa.table({"id": [4], "a": pa.array([50], pa.int32())}), missing="null")
    table.update("id >= 4", set={"a": "a + 1"})
    assert stored(table, "a") == [(0, 0), (2, 2), (3, 3), *([] if change == "delete" else [(4, 51)]), (5, 6)]


def test_updated_rows_are_checked_against_constraints(table: tf.Table) -> None:
    before = stored(table, "a")
    table.set_properties({"tableformat.check.small": "a < 100", "tableformat.check-expression.small": SMALL})
    for value in (100, "a + 98", "2147483648 + a"):
        with pytest.raises(RowsRefusedError):
            table.update("true", set={"a": value})
    assert stored(table, "a") == before


def test_updated_rows_are_checked_against_range_partitions(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    years = tf.RangePartitions(on=["a"], bounds=[(0, 10)], step=5)
    schema = pa.schema([("id", pa.int64()), pa.field("a", pa.int32(), nullable=False)])
    table = catalog.create_table("db.t", schema, range_partitions=years)
    table.append(pa.table({"id": [1], "a": pa.array([7], pa.int32())}))
    with pytest.raises(UncoveredRowsError):
        table.update("true", set={"a": "a + 3"})
    table.update("true", set={"a": "a + 2"})
    assert stored(table, "a") == [(1, 9)]


_NOT_OF_ONE_ROW = ("", "a +", "a, a", "max(a)", "rank() over ()", "(select 1)", "unnest([1])", "a from x", "*")


def test_update_rejects_invalid_assignments(table: tf.Table) -> None:
    before = table.snapshot_id
    with pytest.raises(InvalidArgumentError, match=r"'id' is part of the key.*transaction"):
        table.update("true", set={"id": "id + 1"})
    with pytest.raises(UnknownColumnError):
        table.update("true", set={"b": 1})
    for expression in _NOT_OF_ONE_ROW:
        with pytest.raises(InvalidArgumentError, match="set"):
            table.update("true", set={"a": expression})
    for expression in ("no_such_column", "no_such_function(a)", "CAST(text AS INT)"):
        with pytest.raises(InvalidArgumentError, match="cannot be computed"):
            table.update("true", set={"a": expression})
    with pytest.raises(InvalidArgumentError, match="Write text in single quotes"):
        table.update("true", set={"text": "hello"})
    with pytest.raises(SchemaMismatchError):
        table.update("true", set={"a": "a + 0.5"})
    with pytest.raises(InvalidArgumentError, match="at least one"):
        table.update("true", set={})
    with pytest.raises(UnknownOptionError):
        table.update("true", set={"a": 1}, mode="scan")
    assert table.refresh().snapshot_id == before


_WITH_TIMES = """
import sys, datetime as dt, pyarrow as pa, tableformat as tf
catalog = tf.open_catalog(sys.argv[1])
catalog.create_namespace("db")
schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("text", pa.string()), ("day", pa.date32())])
table = catalog.create_table("db.t", schema, key=["id"])
start = dt.datetime(2023, 12, 31, 12, tzinfo=dt.UTC)
times = [start + dt.timedelta(hours=hour) for hour in range(24)]
table.append(pa.table([[*range(24)], times, [""] * 24, [None] * 24], schema=schema))
given = {"at": "TIMESTAMPTZ '2024-01-01 00:00'", "text": "CAST(\\"at\\" AS VARCHAR)", "day": "CAST(\\"at\\" AS DATE)"}
table.update("id = 20", set=given)
source = pa.table({"id": [*range(24), 30, 31], "seen": [start] * 25 + [start + dt.timedelta(days=1)]})
merge = table.merge(source, on="target.id = source.id AND target.at < '2024-01-01 02:00'")
merge.when_matched_update({"text": "'early'"}, predicate="target.at >= '2024-01-01'")
inserted = {"id": "source.id", "at": "TIMESTAMPTZ '2024-01-02'"}
merge.when_not_matched_insert(inserted, predicate="source.id > 24 AND source.seen < '2024-01-01'").execute()
for row in table.scan().to_arrow().sort_by("id").to_pylist():
    if row["text"] or row["id"] > 24:
        print(row["id"], f"{row['at']:%d %H:%M}", row["text"], row["day"])
"""


@pytest.mark.parametrize("zone", every(3, ["America/New_York", "UTC", "Asia/Tokyo"]))
def test_times_in_expressions_are_utc(tmp_path: Path, zone: str) -> None:
    """The same as in `where=`; they used to be in the time zone of the machine."""
    run = subprocess.run(
        [sys.executable, "-c", _WITH_TIMES, str(tmp_path)],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.splitlines() == [
        "12 01 00:00 early None",
        "13 01 01:00 early None",
        "20 01 00:00 early 2024-01-01",
        "30 02 00:00 None None",
    ], run.stderr
