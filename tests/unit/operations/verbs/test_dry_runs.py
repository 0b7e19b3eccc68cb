"""A dry run of a delete operation counts the rows that would be deleted, in every mode, and changes nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import InvalidArgumentError, InvalidKeyError, InvalidPredicateError, RowsRefusedError

SCHEMA = pa.schema([("id", pa.string()), ("number", pa.int64()), ("value", pa.float64()), ("note", pa.string())])
ROWS = [("a", 1, 1.5, "x"), ("a", 2, None, None), ("b", 1, 2.5, None), ("b", 2, float("nan"), "x"), ("c", 7, 1.5, "x")]


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id", "number"])
    table.append(pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in ROWS], SCHEMA))
    table.delete_prefix({"id": "c"})  # Rows that are gone already are not counted.
    return table


def files(table: tf.Table) -> set[str]:
    return {str(path) for path in Path(table.location.removeprefix("file://")).rglob("*") if path.is_file()}


KEYS = pa.table({"id": ["a", "b", "b", "x", "c"]})
NULLS = pa.table({"id": ["a", "b", "b"], "note": [None, "y", "x"]})


def rows(*keys: tuple[str, int]) -> pa.Table:
    return pa.Table.from_pylist([{"id": name, "number": number} for name, number in keys], SCHEMA)


NO_VALUES = {"value": [None] * 3, "note": [None] * 3}
CHANGES = pa.table({"_op": ["U", "D", "I"], "_ts": [1, 2, 3], "id": ["a", "b", "z"], "number": [1, 1, 1], **NO_VALUES})


@pytest.mark.parametrize("properties", [{}, {"write.delete.blind": "off"}, {"format-version": "3"}])
@pytest.mark.parametrize(
    ("call", "gone"),
    [
        (lambda table, given, **options: table.replace(given, prefix=["id"], **options), 2),
        (lambda table, given, **options: table.replace(given, **options), 1),
        (lambda table, given, **options: table.replace(given.to_reader(), prefix=["id"], **options), 2),
        (lambda table, given, **options: table.upsert(given, **options), 1),
        (lambda table, given, **options: table.overwrite(given, where="id = 'a' OR id = 'z'", **options), 2),
        (lambda table, given, **options: table.overwrite(given, **options), 4),
        (lambda table, given, **options: table.replace_interval(given, on="id", lower="a", upper=None, **options), 4),
        (
            lambda table, given, **options: table.replace_interval(
                given, on=["id", "number"], lower=("a", 2), upper=None, on_refused="divert", **options
            ),
            3,
        ),
        (lambda table, _given, **options: table.apply_changes(CHANGES, **options), 2),
    ],
)
def test_dry_run_of_replace_counts_the_removed_rows(
    table: tf.Table, call: partial[Any], gone: int, properties: dict[str, str]
) -> None:
    """CP-88: the new rows are in its files, which are removed again."""
    table.set_properties(properties)
    given = rows(("a", 1), ("z", 1), ("z", 2))
    before, count, snapshot = files(table), table.scan().count(), table.snapshot_id
    preview = call(table, given, dry_run=True)
    assert (preview.dry_run, preview.deleted_row_count, preview.snapshot_id) == (True, gone, snapshot)
    assert (files(table), table.refresh().scan().count(), table.snapshot_id) == (before, count, snapshot)
    result = call(table, given)
    assert result.added_row_count == preview.added_row_count
    assert table.scan().count() == count - gone + result.added_row_count


def test_dry_run_of_replace_partition_counts_the_removed_rows(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    years = tf.RangePartitions(on=["year"], bounds=[(2020, 2024)], step=1)
    schema = pa.schema([("year", pa.int32()), ("id", pa.int64())])
    table = catalog.create_table("db.t", schema, key=["year", "id"], range_partitions=years)
    table.append(pa.table({"year": [2020, 2021, 2021], "id": [1, 2, 3]}, schema))
    given = pa.table({"year": [2021], "id": [7]}, schema)
    before = files(table)
    assert table.replace_partition(given, (2021, 2022), dry_run=True).deleted_row_count == 2
    assert (files(table), table.refresh().scan().count()) == (before, 3)


@pytest.mark.parametrize(
    ("call", "gone"),
    [
        (lambda table, **options: table.delete("id = 'a'", **options), 2),
        (lambda table, **options: table.delete("value = 2.5", **options), 1),
        (lambda table, **options: table.delete("id = 'a' OR id = 'b' AND number = 1", mode="range", **options), 3),
        (lambda table, **options: table.delete("number = 2", mode="equality", **options), 2),
        (lambda table, **options: table.delete("true", mode="scan", **options), 4),
        (lambda table, **options: table.delete_prefix({"id": "b", "number": 2}, **options), 1),
        (lambda table, **options: table.delete_prefix(KEYS, **options), 4),
        (lambda table, **options: table.delete_prefix(KEYS, mode="equality", **options), 4),
        (lambda table, **options: table.delete_range(lower=("a", 2), **options), 3),
        (lambda table, **options: table.delete_range(lower=(2,), upper=(3,), on=["number"], **options), 2),
        (lambda table, **options: table.delete_range(everything=True, mode="scan", **options), 4),
        (lambda table, **options: table.delete_rows(KEYS, **options), 4),
        (lambda table, **options: table.delete_rows(NULLS, **options), 2),
        (lambda table, **options: table.delete_rows(KEYS.to_reader(), **options), 4),
        (lambda table, **options: table.delete_rows(KEYS.slice(0, 0), **options), 0),
    ],
)
def test_dry_run_of_delete_counts_the_deleted_rows(table: tf.Table, call: partial[Any], gone: int) -> None:
    before, rows, snapshot = files(table), table.scan().count(), table.snapshot_id
    preview = call(table, dry_run=True)
    assert (preview.dry_run, preview.deleted_row_count, preview.snapshot_id) == (True, gone, snapshot)
    assert (files(table), table.refresh().scan().count(), table.snapshot_id) == (before, rows, snapshot)
    result = call(table)
    assert result.dry_run is False
    assert table.scan().count() == rows - gone


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda table: table.delete("value > 2", mode="range", dry_run=True), InvalidPredicateError),
        (lambda table: table.delete_prefix({"number": 1}, dry_run=True), InvalidKeyError),
        (lambda table: table.delete_prefix({"id": "a"}, mode="fast", dry_run=True), InvalidArgumentError),
        (lambda table: table.delete_range(dry_run=True), InvalidArgumentError),
        (lambda table: table.delete_rows(pa.table({"value": [1.5]}), dry_run=True), InvalidKeyError),
        (lambda table: table.delete_rows(pa.table({"number": pa.nulls(1)}), dry_run=True), RowsRefusedError),
    ],
)
def test_dry_run_rejects_invalid_deletes(table: tf.Table, call: Any, error: type) -> None:
    with pytest.raises(error):
        call(table)
