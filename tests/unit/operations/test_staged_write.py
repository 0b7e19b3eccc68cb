"""Replacing intervals with rows that other processes wrote."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import AlreadyCommittedError, InvalidArgumentError, RowsRefusedError, UnknownColumnError

SCHEMA = pa.schema([pa.field("day", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table("db.t", SCHEMA, key=["day", "id"], partition_by=["day"])
    created.append(rows(*((day, 0) for day in range(6))))
    return created


def rows(*given: tuple[int, int]) -> pa.Table:
    return pa.Table.from_pylist([{"day": day, "id": key} for day, key in given], schema=SCHEMA)


def stored(table: tf.Table) -> list[tuple[int, int]]:
    return sorted((row["day"], row["id"]) for row in table.scan().to_arrow().to_pylist())


def test_staged_write_as_first_commit(table: tf.Table) -> None:
    """CP-23: no snapshot can name its files yet; the next one can."""
    assert table.catalog is not None
    empty = table.catalog.create_table("db.empty", SCHEMA, key=["day", "id"])
    write = empty.new_write()
    staged = [write.write(rows((1, 1)))]
    assert empty.commit(write, staged).added_row_count == 1
    with pytest.raises(AlreadyCommittedError):
        empty.commit(write, staged)
    assert stored(empty.refresh()) == [(1, 1)]


def test_staged_rows_replace_an_interval(table: tf.Table) -> None:
    """RP-19: whole files are removed, as are rows that were added in the meantime. A commit without rows empties the
    interval."""
    write = pickle.loads(pickle.dumps(table.new_write(kind="replace-interval", on="day", lower=2, upper=5)))
    staged = [write.write(rows((2, 7))), write.write(rows((4, 8)))]
    table.append(rows((3, 9), (5, 9)))
    batch: dict[str, Any] = {"application_id": "loader", "batch_id": 1}
    result = table.commit(write, staged, **batch)
    assert (result.added_row_count, result.deleted_row_count, result.added_delete_files_count) == (2, 4, 0)
    kept = [(0, 0), (1, 0), (2, 7), (4, 8), (5, 0), (5, 9)]
    assert stored(table) == kept
    assert table.commit(write, staged, **batch).already_applied

    with pytest.raises(RowsRefusedError):
        write.write(rows((2, 1), (5, 1)))
    diverted = write.write(rows((2, 1), (5, 1)), on_refused="divert")
    assert diverted.refused["_row_index"].to_pylist() == [1]
    table.commit(write, [diverted])
    assert stored(table) == [(0, 0), (1, 0), (2, 1), (5, 0), (5, 9)]
    table.commit(write, [])
    assert stored(table) == [(0, 0), (1, 0), (5, 0), (5, 9)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kind": "replace-interval", "lower": 1}, InvalidArgumentError, "needs on="),
        ({"kind": "replace-interval", "on": "day"}, InvalidArgumentError, "every row would be replaced"),
        ({"kind": "replace-interval", "on": "dya", "lower": 1}, UnknownColumnError, "day"),
        (
            {"kind": "replace-interval", "on": "day", "lower": 1, "prefix": ["day"]},
            InvalidArgumentError,
            "prefix is only valid",
        ),
        ({"kind": "append", "on": "day"}, InvalidArgumentError, "only valid with kind='replace-interval'"),
    ],
)
def test_invalid_arguments_are_rejected(
    table: tf.Table, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        table.new_write(**arguments)
