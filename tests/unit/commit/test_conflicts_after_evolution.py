"""Concurrently added files of a schema or spec that is newer than the planned change: they are read by the head's
metadata."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commit_tables import FAST_RETRIES
from new_lakes import new_lake
from pyiceberg.types import LongType, StringType

import tableformat as tf
from tableformat.errors import CommitConflictError, DuplicateKeyError
from tableformat.testing.acts import interrupted_by
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int32(), nullable=False), ("n", pa.int32()), ("v", pa.string())])


@pytest.fixture(params=["2", "3"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    """Ids 1 to 3; n is ten times as much."""
    catalog = new_lake(tmp_path / "lake")
    properties = {**FAST_RETRIES, "format-version": request.param}
    created = catalog.create_table("db.t", SCHEMA, key=["id"], properties=properties)
    created.append(rows_of(1, 2, 3))
    return created


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "n": [10 * each for each in ids], "v": ["x"] * len(ids)}, schema=SCHEMA)


def partitioned(table: tf.Table) -> None:
    with table.update_spec() as update:
        update.add_field("n", "bucket[4]")


def widened(table: tf.Table) -> None:
    with table.update_schema() as update:
        update.update_column("n", LongType())
        update.update_column("id", LongType())


def renamed(table: tf.Table) -> None:
    with table.update_schema() as update:
        update.rename_column("n", "m")


def replaced_column(table: tf.Table) -> None:
    with table.update_schema() as update:
        update.delete_column("n")
    with table.update_schema() as update:
        update.add_column("n", StringType())


EVOLUTIONS: dict[str, Callable[[tf.Table], Any]] = {
    "new spec": partitioned,
    "wider types": widened,
    "renamed column": renamed,
    "another column of the name": replaced_column,
}


def evolved_and_appended(table: tf.Table, evolution: str, *new: int) -> Callable[[], None]:
    assert table.catalog is not None
    other = table.catalog.load_table("db.t")

    def act() -> None:
        EVOLUTIONS[evolution](other)
        rows = rows_of(*new)
        if evolution == "renamed column":
            rows = rows.rename_columns(["id", "m", "v"])
        elif evolution == "another column of the name":
            rows = rows.drop_columns(["n"])
        other.append(rows)

    return act


@pytest.mark.parametrize("evolution", EVOLUTIONS)
def test_concurrent_duplicate_key_under_new_schema_is_found(table: tf.Table, evolution: str) -> None:
    """CP-5: the key was added under another schema or spec; the check is repeated, and no other error is raised."""
    with interrupted_by(evolved_and_appended(table, evolution, 9)), pytest.raises(DuplicateKeyError):
        table.append(rows_of(8, 9).drop_columns(["n"]), on_duplicate="error")
    assert live_values(table.refresh(), "id") == [1, 2, 3, 9]


@pytest.mark.parametrize("evolution", ["new spec", "wider types"])
def test_delete_by_scan_finds_concurrently_added_rows(table: tf.Table, evolution: str) -> None:
    """CP-5."""
    with interrupted_by(evolved_and_appended(table, evolution, 2, 7)):
        table.delete("n = 20 AND v <> 'y'", mode="scan")
    assert live_values(table.refresh(), "id") == [1, 3, 7]


@pytest.mark.parametrize("evolution", ["new spec", "wider types", "renamed column"])
def test_concurrently_added_rows_that_cannot_match_do_not_conflict(table: tf.Table, evolution: str) -> None:
    """CP-5: bounds rule the new file out, in its own types and under its own spec."""
    with interrupted_by(evolved_and_appended(table, evolution, 7)):
        result = table.delete("n = 20 AND v <> 'y'", mode="scan")
    assert result.attempts == 1
    assert live_values(table.refresh(), "id") == [1, 3, 7]


def test_transaction_conflicts_with_rows_under_another_spec(table: tf.Table) -> None:
    def fill() -> None:
        with table.transaction() as tx:
            tx.append(rows_of(7), on_duplicate="ignore")

    with interrupted_by(evolved_and_appended(table, "new spec", 7)), pytest.raises(CommitConflictError):
        fill()
    assert live_values(table.refresh(), "id") == [1, 2, 3, 7]
