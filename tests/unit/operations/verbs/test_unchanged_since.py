"""`if_unchanged_since`: an operation is rejected if rows were added to its scope after a snapshot (CP-83 to CP-85)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.errors import CommitConflictError, InvalidArgumentError, ScopeChangedError

SCHEMA = pa.schema([("customer", pa.string()), ("order", pa.int64()), ("note", pa.string())])


VERSIONS = pytest.mark.parametrize("version", ["2", "3"])


def rows(*given: tuple[str, int]) -> pa.Table:
    return pa.Table.from_pylist([{"customer": name, "order": number, "note": name} for name, number in given], SCHEMA)


def orders(tmp_path: Path, **properties: str) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.orders", SCHEMA, key=["customer", "order"], properties=properties)
    table.append(rows(("ann", 1), ("ann", 2), ("bob", 1)))
    return table


def stored(table: tf.Table) -> list[tuple[str, int]]:
    return sorted((row["customer"], row["order"]) for row in table.scan().to_arrow().to_pylist())


Call = Callable[..., Any]


def in_transaction(table: tf.Table, **commit: Any) -> None:
    with table.transaction(**commit) as tx:
        tx.delete_prefix({"customer": "ann"})
        tx.append(rows(("ann", 9)))


def staged(table: tf.Table, **commit: Any) -> None:
    write = table.new_write(kind="replace", prefix=["customer"])
    table.commit(write, [write.write(rows(("ann", 9)))], **commit)


CALLS: dict[str, Call] = {
    "replace": lambda table, **commit: table.replace(rows(("ann", 9)), prefix=["customer"], **commit),
    "replace_interval": lambda table, **commit: table.replace_interval(
        rows(("ann", 9)), on="customer", lower="ann", upper="bob", **commit
    ),
    "replace_interval blind": lambda table, **commit: table.replace_interval(
        rows(("ann", 9)), on="customer", lower="ann", upper="bob", blind=True, **commit
    ),
    "overwrite": lambda table, **commit: table.overwrite(rows(("ann", 9)), where="customer = 'ann'", **commit),
    "delete": lambda table, **commit: table.delete("customer = 'ann'", **commit),
    "delete by values": lambda table, **commit: table.delete("note = 'ann'", **commit),
    "delete by scan": lambda table, **commit: table.delete("customer = 'ann' AND \"order\" <> 5", **commit),
    "delete scan": lambda table, **commit: table.delete("customer = 'ann'", mode="scan", **commit),
    "delete_prefix": lambda table, **commit: table.delete_prefix({"customer": "ann"}, **commit),
    "delete_prefix scan": lambda table, **commit: table.delete_prefix({"customer": "ann"}, mode="scan", **commit),
    "delete_range": lambda table, **commit: table.delete_range(lower=("ann",), upper=("b",), **commit),
    "delete_rows": lambda table, **commit: table.delete_rows(pa.table({"note": ["ann"]}), **commit),
    "upsert": lambda table, **commit: table.upsert(rows(("ann", 3)), **commit),
    "update": lambda table, **commit: table.update("customer = 'ann'", set={"note": "'x'"}, **commit),
    "transaction": in_transaction,
    "new_write": staged,
}


@VERSIONS
@pytest.mark.parametrize("name", list(CALLS))
def test_rows_added_to_the_scope_conflict(tmp_path: Path, name: str, version: str) -> None:
    """CP-83: rows outside the scope are not a conflict; nothing is committed, and the operation is not repeated
    automatically."""
    table = orders(tmp_path, **{"format-version": version})
    read = table.snapshot_id
    table.append(rows(("zoe", 1)))
    table.append(rows(("ann", 3)))
    before = stored(table), len(table.history())
    with pytest.raises(ScopeChangedError, match=f"since snapshot {read}.*was added since"):
        CALLS[name](table, if_unchanged_since=read)
    assert (stored(table), len(table.history())) == before


@pytest.mark.parametrize("name", list(CALLS))
def test_rows_added_outside_the_scope_do_not_conflict(tmp_path: Path, name: str) -> None:
    table = orders(tmp_path)
    read = table.snapshot_id
    table.append(rows(("zoe", 1)))
    table.refresh()
    held = table.snapshot_id
    CALLS[name](table, if_unchanged_since=read)
    assert table.snapshot_id != held
    assert ("bob", 1) in stored(table)


def test_concurrent_commit_after_the_check_is_detected(tmp_path: Path) -> None:
    """Each attempt checks its current head."""
    table = orders(tmp_path)
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.orders")
    read = table.snapshot_id

    def between(given: pa.Table) -> Any:
        other.append(rows(("ann", 7)))
        yield from given.to_batches()

    with pytest.raises(ScopeChangedError):
        table.replace(
            pa.RecordBatchReader.from_batches(SCHEMA, between(rows(("ann", 9)))),
            prefix=["customer"],
            if_unchanged_since=read,
        )
    table.refresh()
    assert stored(table) == [("ann", 1), ("ann", 2), ("ann", 7), ("bob", 1)]


def test_maintenance_jobs_do_not_conflict(tmp_path: Path) -> None:
    """CP-85: compaction writes files with rows of the scope, and conversion removes deletes."""
    table = orders(tmp_path)
    table.append(rows(("ann", 3)))
    table.delete_prefix({"customer": "bob"})
    read = table.snapshot_id
    table.maintenance.convert_deletes()
    table.maintenance.compact(target_file_size_bytes=1 << 20)
    table.refresh()
    assert table.snapshot_id != read
    table.replace(rows(("ann", 9)), prefix=["customer"], if_unchanged_since=read)
    assert stored(table) == [("ann", 9)]


def test_broken_history_since_the_snapshot_conflicts(tmp_path: Path) -> None:
    """CP-84: after a rollback, for an unknown snapshot, and if a snapshot has expired."""
    table = orders(tmp_path)
    first = table.snapshot_id
    table.append(rows(("zoe", 1)))
    gone = table.snapshot_id
    table.rollback(snapshot_id=first)
    for unknown in (gone, 12345):
        with pytest.raises(ScopeChangedError):
            table.delete_prefix({"customer": "ann"}, if_unchanged_since=unknown)


def test_minus_one_means_a_branch_without_snapshots(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.orders", SCHEMA, key=["customer", "order"])
    table.replace(rows(("ann", 1)), prefix=["customer"], if_unchanged_since=-1)
    table.replace(rows(("bob", 1)), prefix=["customer"], if_unchanged_since=-1)
    with pytest.raises(CommitConflictError):
        table.replace(rows(("ann", 2)), prefix=["customer"], if_unchanged_since=-1)
    assert stored(table) == [("ann", 1), ("bob", 1)]


def test_dry_run_checks_too_and_unscoped_operation_is_rejected(tmp_path: Path) -> None:
    table = orders(tmp_path)
    read = table.snapshot_id
    table.append(rows(("ann", 3)))
    with pytest.raises(ScopeChangedError):
        table.delete("customer = 'ann'", dry_run=True, if_unchanged_since=read)
    with pytest.raises(InvalidArgumentError, match="only adds rows"):
        table.append(rows(("cid", 1)), if_unchanged_since=read)
    with pytest.raises(ScopeChangedError):
        table.append(rows(("ann", 3)), on_duplicate="ignore", if_unchanged_since=read)
    assert table.append(rows(("ann", 1)), on_duplicate="ignore", if_unchanged_since=table.snapshot_id)


@pytest.mark.parametrize("properties", [{"write.delete.blind": "off"}, {"write.delete.blind": "equality"}])
def test_non_blind_deletes_have_the_same_scope(tmp_path: Path, properties: dict[str, str]) -> None:
    """SP-22: rows are found instead, in files that the scope does not name."""
    table = orders(tmp_path, **properties)
    read = table.snapshot_id
    table.append(rows(("zoe", 1)))
    table.delete_prefix({"customer": "bob"}, if_unchanged_since=read)
    table.append(rows(("ann", 3)))
    with pytest.raises(ScopeChangedError):
        table.delete_prefix({"customer": "ann"}, if_unchanged_since=read)
    assert stored(table) == [("ann", 1), ("ann", 2), ("ann", 3), ("zoe", 1)]


def test_promoted_key_type_does_not_hide_added_rows(tmp_path: Path) -> None:
    """Bounds of a widened column are not compared with spans of before."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.lines", pa.schema([("line", pa.int32())]), key=["line"])
    table.append(pa.table({"line": pa.array([1, 2], pa.int32())}))
    read = table.snapshot_id
    other = catalog.load_table("db.lines")

    def delete_while_another_widens() -> None:
        with table.transaction(if_unchanged_since=read) as tx:
            tx.delete_prefix({"line": 1})
            with other.update_schema() as update:
                update.update_column("line", LongType())
            other.append(pa.table({"line": [1]}))

    with pytest.raises(ScopeChangedError):
        delete_while_another_widens()
    table.refresh()
    assert table.scan().count() == 3


def test_applied_batch_is_reported_instead_of_a_conflict(tmp_path: Path) -> None:
    """CP-14: also by a handle that does not know of the commit."""
    table = orders(tmp_path)
    stale = tf.open_catalog(str(tmp_path / "lake")).load_table("db.orders")
    read = table.snapshot_id
    for handle, expected in ((table, False), (table, True), (stale, True)):
        result = handle.replace(
            rows(("ann", 9)), prefix=["customer"], if_unchanged_since=read, application_id="loader", batch_id=1
        )
        assert result.already_applied is expected
    with pytest.raises(ScopeChangedError):
        table.replace(rows(("ann", 9)), prefix=["customer"], if_unchanged_since=read)
