"""CP-27: an upsert of rows without some columns must state the values of these columns."""

from __future__ import annotations

import decimal
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from long_forms import every
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import (
    CommitConflictError,
    DuplicateKeyError,
    InvalidArgumentError,
    RowsRefusedError,
    UnknownColumnError,
)

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("a", pa.int32()), ("b", pa.list_(pa.string()))])
STORED = [("x", 1, 10, ["p"]), ("x", 2, 20, None), ("y", 1, None, ["q", None])]


SMALL = '{"type": "lt", "term": "a", "value": 100}'


def as_rows(*values: tuple[Any, ...], names: tuple[str, ...] = ("id", "n", "a", "b")) -> pa.Table:
    fields = pa.schema([SCHEMA.field(name) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in values], fields)


@pytest.fixture(params=every(2, ["3", "2"]))
def table(tmp_path: Path, request: pytest.FixtureRequest) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id", "n"], properties={"format-version": request.param})
    table.append(as_rows(*STORED))
    return table


def stored(table: tf.Table) -> list[tuple[Any, ...]]:
    return sorted(
        (tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist()), key=lambda row: row[:2]
    )


PARTIAL = as_rows(("x", 2, 21), ("z", 9, 90), ("x", 2, 22), names=("id", "n", "a"))


def test_missing_column_error_names_it_and_the_options(table: tf.Table) -> None:
    """CP-27: nothing is lost in silence."""
    with pytest.raises(InvalidArgumentError, match=r"lack 'b'.*missing=.*'keep'.*'null'"):
        table.upsert(PARTIAL)
    with pytest.raises(InvalidArgumentError, match="lack 'a', 'b'"):
        table.append(PARTIAL.select(["id", "n"]), on_duplicate="replace")
    with pytest.raises(InvalidArgumentError, match="missing must be one of"):
        table.upsert(PARTIAL, missing="ignore")
    with pytest.raises(UnknownColumnError):
        table.upsert(PARTIAL.rename_columns(["id", "n", "aa"]))
    assert stored(table) == STORED


def test_change_events_with_missing_column_are_rejected_unless_deletes(table: tf.Table) -> None:
    """CP-27: `apply_changes` wrote null over what was stored."""
    events = PARTIAL.append_column("_op", pa.array(["update", "insert", "update"]))
    with pytest.raises(InvalidArgumentError, match=r"events that .* lack 'b'.*apply_changes\(.*missing="):
        table.apply_changes(events, order_by=None)
    with pytest.raises(InvalidArgumentError, match="lack 'b'"), table.transaction() as tx:
        tx.apply_changes(events, order_by=None)
    with pytest.raises(InvalidArgumentError, match=r"missing='keep' is only supported with on_refused='fail'"):
        table.apply_changes(events, order_by=None, missing="keep", on_refused="divert")
    assert stored(table) == STORED
    gone = pa.table({"id": ["x"], "n": [1], "_op": ["delete"]})
    table.apply_changes(gone, order_by=None)
    table.apply_changes(events, order_by=None, missing="null")
    assert stored(table) == [("x", 2, 22, None), STORED[2], ("z", 9, 90, None)]


def test_missing_null_writes_null(table: tf.Table) -> None:
    with pytest.raises(DuplicateKeyError):
        table.upsert(PARTIAL, missing="null")
    table.upsert(PARTIAL.slice(1), missing="null")
    assert stored(table) == [STORED[0], ("x", 2, 22, None), STORED[2], ("z", 9, 90, None)]


def test_missing_keep_keeps_stored_values_through_deletes(table: tf.Table) -> None:
    """CP-27: only rows that are alive have values to keep."""
    table.upsert(as_rows(("y", 1, 5, ["newer"])))
    table.delete_prefix({"id": "x", "n": 1})
    given = as_rows(("x", 2, 21), ("y", 1, 51), ("z", 9, 90), ("x", 1, 11), names=("id", "n", "a"))
    result = table.upsert(given.to_reader(), missing="keep")
    assert (result.added_row_count, result.deleted_row_count) == (4, 2)
    assert stored(table) == [("x", 1, 11, None), ("x", 2, 21, None), ("y", 1, 51, ["newer"]), ("z", 9, 90, None)]
    table.upsert(given.select(["id", "n"]), missing="keep")
    assert stored(table) == [("x", 1, 11, None), ("x", 2, 21, None), ("y", 1, 51, ["newer"]), ("z", 9, 90, None)]


def test_missing_keep_reads_values_of_the_transaction(table: tf.Table) -> None:
    with table.transaction() as tx:
        tx.upsert(as_rows(("x", 1, 7, ["tx"]), ("n", 1, 8, ["tx"])))
        tx.upsert(as_rows(("x", 1, 70), ("n", 1, 80), ("x", 2, 200), names=("id", "n", "a")), missing="keep")
        tx.delete_prefix({"id": "y"})
    assert stored(table) == [("n", 1, 80, ["tx"]), ("x", 1, 70, ["tx"]), ("x", 2, 200, None)]


def test_concurrent_write_of_a_kept_key_is_read_again(table: tf.Table) -> None:
    """CP-5, CP-6: what was read is read again."""
    other = table.catalog.load_table("db.t")
    other.upsert(as_rows(("x", 1, 1, ["other"]), ("new", 1, 1, ["other"])))
    given = as_rows(("x", 1, 2), ("new", 1, 2), names=("id", "n", "a"))
    with pytest.raises(CommitConflictError):
        table.upsert(given.to_reader(), missing="keep")
    assert table.refresh().snapshot_id == other.snapshot_id
    stale = table.catalog.load_table("db.t")
    other.delete_prefix({"id": "x", "n": 1})
    stale.upsert(given, missing="keep")
    assert stored(table) == [("new", 1, 2, ["other"]), ("x", 1, 2, None), *STORED[1:]]


def test_missing_keep_rejects_duplicate_stored_key(table: tf.Table) -> None:
    table.append(as_rows(("x", 1, 0, ["again"])))
    before = stored(table)
    with pytest.raises(DuplicateKeyError):
        table.upsert(as_rows(("y", 1, 1), ("x", 1, 1), names=("id", "n", "a")), missing="keep")
    assert stored(table) == before


def test_constraints_apply_to_kept_and_given_values(table: tf.Table) -> None:
    table.set_properties({"tableformat.check.small": "a < 100", "tableformat.check-expression.small": SMALL})
    with pytest.raises(RowsRefusedError):
        table.upsert(as_rows(("y", 1, 1), ("y", 1, 2), ("x", 1, 100), names=("id", "n", "a")), missing="keep")
    with pytest.raises(InvalidArgumentError, match="on_refused"):
        table.upsert(PARTIAL, missing="keep", on_refused="divert")
    assert stored(table) == STORED


def test_missing_keep_with_keys_and_values_of_every_type(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    key = {
        "u": pa.uuid(),
        "d": pa.decimal128(9, 2),
        "f": pa.binary(3),
        "o": pa.binary(),
        "t": pa.timestamp("us", "UTC"),
    }
    schema = pa.schema([*key.items(), ("kept", pa.uuid()), ("given", pa.int32())])
    table = catalog.create_table("db.t", schema, key=list(key))
    one, two = uuid.UUID(int=1).bytes, uuid.UUID(int=2**127).bytes
    columns: dict[str, Any] = {
        "u": pa.array([one, two], pa.uuid()),
        "d": pa.array([decimal.Decimal("1.50"), decimal.Decimal("-2.00")], pa.decimal128(9, 2)),
        "f": pa.array([b"abc", b"\xff\x00c"], pa.binary(3)),
        "o": pa.array([b"", b"\xff"]),
        "t": pa.array([0, -1], pa.timestamp("us", "UTC")),
    }
    table.append(pa.table({**columns, "kept": columns["u"], "given": pa.array([1, 2], pa.int32())}))
    table.upsert(pa.table({**columns, "given": pa.array([3, 4], pa.int32())}), missing="keep")
    rows = table.scan(columns=["kept", "given"]).to_arrow().sort_by("given").to_pylist()
    assert rows == [{"kept": uuid.UUID(bytes=one), "given": 3}, {"kept": uuid.UUID(bytes=two), "given": 4}]
