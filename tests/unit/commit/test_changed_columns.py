"""Columns that are renamed, dropped or removed from the key between planning a delete and committing it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from long_forms import every
from new_lakes import new_lake
from pyiceberg.types import StringType

import tableformat as tf
from tableformat.errors import CommitConflictError, InvalidArgumentError, UnknownColumnError
from tableformat.testing.acts import interrupted_by
from tableformat.testing.table_rows import live_rows

SCHEMA = pa.schema(
    [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64(), nullable=False), ("note", pa.string())]
)
ROWS = [{"a": 1, "b": 2, "note": "p"}, {"a": 2, "b": 1, "note": None}, {"a": 3, "b": 3, "note": "r"}]


@pytest.fixture(params=every(2, ["3", "2"]))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    made = catalog.create_table("db.t", SCHEMA, key=["a", "b"], properties={"format-version": request.param})
    made.append(rows(*ROWS))
    return made


def rows(*given: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(given), schema=SCHEMA)


def another(table: tf.Table) -> tf.Table:
    """The table as another process would load it."""
    assert table.catalog is not None
    loaded = table.catalog.load_table(table.name)
    assert isinstance(loaded, tf.Table)
    return loaded


def rename(table: tf.Table, *names: tuple[str, str]) -> None:
    for old, new in names:
        with another(table).update_schema() as update:
            update.rename_column(old, new)


def exchange_names(table: tf.Table) -> None:
    """a is b from now on, and b is a."""
    rename(table, ("a", "c"), ("b", "a"), ("c", "b"))


def drop_note(table: tf.Table) -> None:
    with another(table).update_schema() as update:
        update.delete_column("note")
    another(table).maintenance.compact(rewrite_all=True)


@pytest.mark.parametrize("refreshed", [False, True])
@pytest.mark.parametrize("encoding", ["range", "equality"])
def test_staged_replacement_uses_key_field_ids_after_rename(table: tf.Table, refreshed: bool, encoding: str) -> None:
    """CP-37: with the names exchanged the key (1, 2) is still that row, and not (2, 1)."""
    table.set_properties({"write.delete.prefix-encoding": encoding})
    write = table.new_write(kind="replace")
    staged = write.write(rows({"a": 1, "b": 2, "note": "new"}))
    exchange_names(table)
    handle = another(table) if refreshed else table
    handle.commit(write, [staged])
    assert live_rows(another(table)) == [
        {"b": 1, "a": 2, "note": "new"},
        {"b": 2, "a": 1, "note": None},
        {"b": 3, "a": 3, "note": "r"},
    ]


def test_staged_replacement_with_renamed_prefix_column(table: tf.Table) -> None:
    """CP-37"""
    write = table.new_write(kind="replace", prefix=["a"])
    staged = write.write(rows({"a": 1, "b": 9, "note": "new"}))
    rename(table, ("a", "c"))
    another(table).commit(write, [staged])
    assert [(row["c"], row["b"]) for row in live_rows(another(table))] == [(1, 9), (2, 1), (3, 3)]


def test_replace_interval_of_dropped_column_is_rejected(table: tf.Table) -> None:
    """CP-37, CP-35: by a handle that knows of it, and by one that does not."""
    write = table.new_write(kind="replace-interval", on="note", lower="a", upper=None)
    staged = write.write(rows({"a": 7, "b": 7, "note": "x"}))
    drop_note(table)
    with pytest.raises(InvalidArgumentError, match=r"'note'.*was dropped"):
        another(table).commit(write, [staged])
    with pytest.raises(InvalidArgumentError, match=r"'note'.*was dropped"):
        table.commit(write, [staged])
    assert len(live_rows(another(table))) == 3


def in_transaction(table: tf.Table) -> None:
    with table.transaction() as transaction:
        transaction.delete("note IS NULL")


DELETES: dict[str, Callable[[tf.Table], Any]] = {
    "equality": lambda table: table.delete_rows(pa.table({"note": pa.array([None], pa.string())})),
    "range": lambda table: table.delete_range(on=["note"], lower=None, upper=("a",)),
    "filter": lambda table: table.delete("note IS NULL"),
    "replaced": lambda table: table.replace_interval(rows(), on="note", lower=None, upper="a"),
    "blind": lambda table: table.replace_interval(rows(), on="note", lower=None, upper="a", blind=True),
    "transaction": in_transaction,
}
"""Deletes of rows without a note; the handle knows one such row."""


@pytest.mark.parametrize("delete", DELETES.values(), ids=DELETES)
def test_delete_by_dropped_column_raises_error(table: tf.Table, delete: Callable[[tf.Table], Any]) -> None:
    """CP-35: no row has a note any more, and the delete was meant for the rows without a note while the column
    existed."""
    drop_note(table)
    with pytest.raises((UnknownColumnError, CommitConflictError), match="note"):
        delete(table)
    assert [(row["a"], row["b"]) for row in live_rows(another(table))] == [(1, 2), (2, 1), (3, 3)]
    assert another(table).verify(deep=True).is_clean


def test_column_dropped_during_the_commit(table: tf.Table) -> None:
    """CP-35: the commit asserts the schema."""
    with (
        interrupted_by(lambda: drop_note(table)),
        pytest.raises((UnknownColumnError, CommitConflictError), match="note"),
    ):
        DELETES["equality"](table)
    assert len(live_rows(another(table))) == 3


@pytest.mark.parametrize("verb", ["upsert", "replace", "apply_changes", "append"])
def test_upsert_uses_the_current_key_after_key_change(table: tf.Table, verb: str) -> None:
    """CP-36: by the handle's key, (7, 1) and (7, 2) would be replaced by (7, 9); by the current key they are not."""
    table.set_key(["a"])
    other = another(table).set_key(["a", "b"])
    other.append(rows({"a": 7, "b": 1, "note": None}, {"a": 7, "b": 2, "note": None}))
    new = rows({"a": 7, "b": 9, "note": None})
    match verb:
        case "append":
            table.append(new, on_duplicate="replace")
        case "apply_changes":
            table.apply_changes(new.append_column("_op", pa.array(["I"])), order_by=None)
        case _:
            getattr(table, verb)(new)
    assert [row["b"] for row in live_rows(another(table), "a = 7")] == [1, 2, 9]


def test_upsert_from_reader_conflicts_after_key_change(table: tf.Table) -> None:
    """CP-36: what cannot be staged again is a conflict."""
    table.set_key(["a"])
    another(table).set_key(["a", "b"])
    with pytest.raises(CommitConflictError):
        table.upsert(rows({"a": 1, "b": 9, "note": None}).to_reader())
    assert len(live_rows(another(table))) == 3


@pytest.mark.parametrize("encoding", ["range", "equality"])
@pytest.mark.parametrize("refreshed", [False, True])
def test_staged_replacement_conflicts_after_key_change(table: tf.Table, refreshed: bool, encoding: str) -> None:
    """CP-36: the key at the time when the rows were written would delete (7, 1) and (7, 2). A prefix of the key does
    not depend on the key: it states itself which rows it deletes."""
    table.set_properties({"write.delete.prefix-encoding": encoding})
    by_prefix = table.new_write(kind="replace", prefix=["a"])
    table.set_key(["a"])
    by_key = table.new_write(kind="replace")
    new = [write.write(rows({"a": 7, "b": 9, "note": None})) for write in (by_key, by_prefix)]
    other = another(table).set_key(["a", "b"])
    other.append(rows({"a": 7, "b": 1, "note": None}, {"a": 7, "b": 2, "note": None}))
    handle = another(table) if refreshed else table
    with pytest.raises(InvalidArgumentError, match=r"same a, but the key of db\.t was changed .* is now a, b"):
        handle.commit(by_key, [new[0]])
    assert [row["b"] for row in live_rows(another(table), "a = 7")] == [1, 2]
    handle.commit(by_prefix, [new[1]])
    assert [row["b"] for row in live_rows(another(table), "a = 7")] == [9]


def add_color(table: tf.Table) -> None:
    with another(table).update_schema() as update:
        update.add_column("color", StringType())
    another(table).upsert(pa.table({"a": [1], "b": [2], "note": ["p"], "color": ["red"]}))


def upsert_in_a_transaction(table: tf.Table, new: pa.Table) -> None:
    with table.transaction() as transaction:
        transaction.upsert(new)


UPSERTS: dict[str, Callable[[tf.Table, pa.Table], Any]] = {
    "upsert": lambda table, new: table.upsert(new),
    "append": lambda table, new: table.append(new, on_duplicate="replace"),
    "of a stream": lambda table, new: table.upsert(new.to_reader()),
    "transaction": upsert_in_a_transaction,
}


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("deletes", ["range", "off"])
@pytest.mark.parametrize("upsert", UPSERTS.values(), ids=UPSERTS)
def test_upsert_keeps_values_of_concurrently_added_column(
    table: tf.Table, upsert: Callable[[tf.Table, pa.Table], Any], deletes: str, is_late: bool
) -> None:
    """CP-27: the rows had every column when the call began; another column was added in the meantime, with a value for
    this key."""
    table.set_properties({"write.delete.blind": deletes})
    new = rows({"a": 1, "b": 2, "note": "new"})
    with interrupted_by(lambda: add_color(table)) if is_late else nullcontext():
        if not is_late:
            add_color(table)
        with pytest.raises((InvalidArgumentError, CommitConflictError), match=r"'color'|may hold rows"):
            upsert(table, new)
    assert [row["color"] for row in live_rows(another(table), "a = 1")] == ["red"]
    another(table).upsert(new, missing="keep")
    assert live_rows(another(table), "a = 1") == [{"a": 1, "b": 2, "note": "new", "color": "red"}]


@pytest.mark.parametrize("verb", ["append", "update", "delete", "merge", "upsert some columns"])
def test_operation_with_expired_snapshot_reads_the_head(table: tf.Table, verb: str) -> None:
    """CP-22: the snapshot that it would have read no longer exists, so it reads the newest snapshot instead."""
    other = another(table)
    other.append(rows({"a": 4, "b": 4, "note": "s"}))
    other.maintenance.compact(rewrite_all=True)
    other.maintenance.expire_snapshots(older_than=2**42, retain_last=1)
    before = sorted((row["a"], row["note"]) for row in live_rows(another(table)))
    match verb:
        case "append":
            table.append(rows({"a": 4, "b": 4, "note": "t"}), on_duplicate="ignore")
        case "update":
            table.update("a = 4", set={"note": "'s'"})
        case "delete":
            table.delete("a = 9", mode="scan")
        case "merge":
            statement = table.merge(rows({"a": 4, "b": 4, "note": "s"}), on=["a", "b"])
            statement.when_matched_update_all(except_cols=["a", "b"]).when_not_matched_insert_all().execute()
        case _:
            table.upsert(pa.table({"a": [4], "b": [4]}), missing="keep")
    assert sorted((row["a"], row["note"]) for row in live_rows(another(table))) == before
