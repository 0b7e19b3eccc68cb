"""Transactions over several tables: all or nothing, checked for every table, and once for each batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from commit_tables import FAST_RETRIES
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.catalog.sql import SqlCatalog

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.errors import (
    BatchPartlyAppliedError,
    CommitConflictError,
    CommitInterruptedError,
    CommitStateUnknownError,
    InvalidArgumentError,
    SeveralTablesError,
    StorageError,
    TableNotFoundError,
)

ORDERS = pa.schema([pa.field("order", pa.int64(), nullable=False), pa.field("customer", pa.string())])


LINES = pa.schema(
    [
        pa.field("order", pa.int64(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("amount", pa.int64()),
    ]
)


BATCH: dict[str, Any] = {"application_id": "loader", "batch_id": 7}


@pytest.fixture(params=["2", "3"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def catalog(tmp_path: Path) -> tf.Catalog:
    return filled(tf.open_catalog(str(tmp_path / "lake")))


def filled(catalog: tf.Catalog, version: str = "2") -> tf.Catalog:
    """Order 1 of Ada has two lines, order 2 of Bob has one."""
    catalog.create_namespace("db")
    properties = {**FAST_RETRIES, "format-version": version}
    catalog.create_table("db.orders", ORDERS, key=["order"], properties=properties).append(
        orders((1, "Ada"), (2, "Bob"))
    )
    catalog.create_table("db.lines", LINES, key=["order", "line"], properties=properties).append(
        lines((1, 1, 10), (1, 2, 20), (2, 1, 30))
    )
    return catalog


def orders(*rows: tuple[int, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(ORDERS.names, row, strict=True)) for row in rows], schema=ORDERS)


def lines(*rows: tuple[int, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(LINES.names, row, strict=True)) for row in rows], schema=LINES)


def rows_of(catalog: tf.Catalog, name: str) -> list[tuple[Any, ...]]:
    rows = catalog.load_table(name).scan().to_arrow()
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def state(catalog: tf.Catalog) -> dict[str, list[tuple[Any, ...]]]:
    return {name: rows_of(catalog, name) for name in ("db.orders", "db.lines")}


BEFORE = {"db.orders": [(1, "Ada"), (2, "Bob")], "db.lines": [(1, 1, 10), (1, 2, 20), (2, 1, 30)]}


AFTER = {"db.orders": [(1, "Eve"), (2, "Bob")], "db.lines": [(1, 1, 11), (2, 1, 30)]}


def change_order(catalog: tf.Catalog, **batch: Any) -> dict[str, tf.CommitResult]:
    """A new message for order 1, with another customer and one line."""
    with catalog.transaction(**batch) as tx:
        tx.table("db.orders").replace(orders((1, "Eve")))
        tx.table("db.lines").replace(lines((1, 1, 11)), prefix=["order"])
    return tx.results


def files(directory: Path) -> set[Path]:
    return {path for path in directory.rglob("*") if path.is_file() and "catalog.db" not in path.name}


@contextmanager
def before_the_request(other: Callable[[], Any]) -> Iterator[None]:
    """Others commit after all tables were checked, and before the catalog is asked."""
    waiting, commit_tables = [other], EmbeddedCatalog.commit_tables

    def late(self: EmbeddedCatalog, requests: Any) -> Any:
        while waiting:
            waiting.pop()()
        return commit_tables(self, requests)

    with mock.patch.object(EmbeddedCatalog, "commit_tables", late):
        yield
    assert not waiting


def test_both_tables_change_in_one_commit(tmp_path: Path, version: str) -> None:
    """CP-74, CP-76."""
    catalog = filled(tf.open_catalog(str(tmp_path / "lake")), version)
    results = change_order(catalog)
    assert state(catalog) == AFTER
    assert {name: (each.added_row_count, each.attempts) for name, each in results.items()} == {
        "db.orders": (1, 1),
        "db.lines": (1, 1),
    }
    snapshots = [catalog.load_table(name).metadata.current_snapshot() for name in results]
    assert [each.snapshot_id for each in snapshots if each] == [each.snapshot_id for each in results.values()]
    assert len({each.timestamp_ms for each in snapshots if each}) == 1, "a reader as of a moment sees both or none"


def test_exception_in_the_block_changes_no_table(catalog: tf.Catalog, tmp_path: Path) -> None:
    """CP-74."""
    before = files(tmp_path)

    def change() -> None:
        with catalog.transaction() as tx:
            tx.table("db.orders").replace(orders((1, "Eve")))
            tx.table("db.lines").delete("amount = 10", mode="scan")
            print(tx.results)

    with pytest.raises(InvalidArgumentError, match="available only after its"):
        change()
    assert state(catalog) == BEFORE
    assert files(tmp_path) == before


def test_a_conflict_in_one_table_aborts_all(catalog: tf.Catalog, tmp_path: Path) -> None:
    """CP-74: every table is checked against its head."""
    before: set[Path] = set()

    def change() -> None:
        with catalog.transaction() as tx:
            tx.table("db.orders").replace(orders((1, "Eve")))
            tx.table("db.lines").delete("amount > 15", mode="scan")
            catalog.load_table("db.lines").append(lines((2, 2, 99)))
            before.update(files(tmp_path))

    with pytest.raises(CommitConflictError):
        change()
    assert rows_of(catalog, "db.orders") == BEFORE["db.orders"]
    assert rows_of(catalog, "db.lines") == sorted([*BEFORE["db.lines"], (2, 2, 99)])
    assert files(tmp_path) < before, "staged files went"


def test_lost_race_in_one_table_retries_all_tables(catalog: tf.Catalog) -> None:
    """CP-74: on the new heads, and both tables or none."""
    with before_the_request(lambda: catalog.load_table("db.lines").append(lines((3, 1, 99)))):
        results = change_order(catalog)
    assert {each.attempts for each in results.values()} == {2}
    assert state(catalog) == {**AFTER, "db.lines": [*AFTER["db.lines"], (3, 1, 99)]}
    assert all(catalog.load_table(name).verify(deep=True).is_clean for name in AFTER)


def test_conflicting_lost_race_changes_nothing(catalog: tf.Catalog) -> None:
    """CP-75: the deleted order had no line when the transaction looked, and has one now."""

    def change() -> None:
        with catalog.transaction() as tx:
            tx.table("db.lines").delete('"order" = 3', mode="scan")
            tx.table("db.orders").append(orders((4, "Dan")))

    with (
        before_the_request(lambda: catalog.load_table("db.lines").append(lines((3, 1, 99)))),
        pytest.raises(CommitConflictError),
    ):
        change()
    assert rows_of(catalog, "db.orders") == BEFORE["db.orders"]


def test_write_skew_is_prevented(catalog: tf.Catalog) -> None:
    """CP-75: no write skew."""

    def other() -> None:
        with catalog.transaction() as tx:
            tx.table("db.orders").delete("customer = 'Zoe'", mode="scan")
            tx.table("db.lines").append(lines((3, 1, 99)))

    def change() -> None:
        with catalog.transaction() as tx:
            tx.table("db.lines").delete("amount = 99", mode="scan")
            tx.table("db.orders").append(orders((3, "Zoe")))

    with before_the_request(other), pytest.raises(CommitConflictError):
        change()
    assert rows_of(catalog, "db.orders") == BEFORE["db.orders"]
    assert (3, 1, 99) in rows_of(catalog, "db.lines")


def test_unchanged_table_gets_no_snapshot(catalog: tf.Catalog) -> None:
    """CP-75."""
    head = catalog.load_table("db.lines").iceberg.metadata_location
    with catalog.transaction() as tx:
        tx.table("db.orders").append(orders((3, "Zoe")))
        tx.table("db.lines").delete("amount = 99", mode="scan")
    assert catalog.load_table("db.lines").iceberg.metadata_location == head
    assert [tx.results[name].attempts for name in ("db.orders", "db.lines")] == [1, 0]
    with catalog.transaction() as tx:
        tx.table("db.orders").delete("customer = 'nobody'", mode="scan")
        tx.table("db.lines").delete("amount = 99", mode="scan")
    assert {each.attempts for each in tx.results.values()} == {0}


def test_a_batch_is_committed_once_in_all_tables(catalog: tf.Catalog) -> None:
    """CP-78."""
    change_order(catalog, **BATCH)
    catalog.load_table("db.lines").append(lines((9, 1, 9)))
    results = change_order(catalog, **BATCH)
    assert {each.already_applied for each in results.values()} == {True}
    assert state(catalog) == {**AFTER, "db.lines": [*AFTER["db.lines"], (9, 1, 9)]}
    assert not any(each.already_applied for each in change_order(catalog, **{**BATCH, "batch_id": 8}).values())


def test_concurrent_batch_of_two_processes_is_committed_once(catalog: tf.Catalog) -> None:
    """CP-78: the second one finds it at its next attempt."""
    with before_the_request(lambda: change_order(catalog, **BATCH)):
        results = change_order(catalog, **BATCH)
    assert {each.already_applied for each in results.values()} == {True}
    assert state(catalog) == AFTER


def created_again(catalog: tf.Catalog) -> None:
    change_order(catalog, **BATCH)
    catalog.drop_table("db.lines")
    catalog.create_table("db.lines", LINES, key=["order", "line"])


def committed_alone(catalog: tf.Catalog) -> None:
    catalog.load_table("db.orders").replace(orders((1, "Eve")), **BATCH)


def rolled_back(catalog: tf.Catalog) -> None:
    before = catalog.load_table("db.lines").snapshot_id
    change_order(catalog, **BATCH)
    catalog.load_table("db.lines").rollback(snapshot_id=before, replay=True)


@pytest.mark.parametrize("how", [created_again, committed_alone, rolled_back])
def test_batch_applied_to_only_some_tables_is_rejected(catalog: tf.Catalog, how: Callable[[tf.Catalog], None]) -> None:
    """CP-78: to commit the rest would be a guess, and so would be to leave it out."""
    how(catalog)
    before = state(catalog)
    with pytest.raises(BatchPartlyAppliedError) as refused:
        change_order(catalog, **BATCH)
    assert (len(refused.value.having), len(refused.value.lacking)) == (1, 1)
    assert state(catalog) == before


def test_batch_record_removed_during_retry_is_rejected(catalog: tf.Catalog) -> None:
    """CP-78: the operations had staged nothing for the table that already had the batch."""
    before = {name: catalog.load_table(name).snapshot_id for name in AFTER}
    change_order(catalog, **BATCH)

    def change() -> None:
        with catalog.transaction(**BATCH) as tx:
            tx.table("db.orders").replace(orders((1, "Eve")))
            for name, snapshot_id in before.items():
                catalog.load_table(name).rollback(snapshot_id=snapshot_id, replay=True)
            tx.table("db.lines").replace(lines((1, 1, 11)), prefix=["order"])

    with pytest.raises(BatchPartlyAppliedError):
        change()
    assert state(catalog) == BEFORE


@contextmanager
def commit_tables_raises(error: BaseException, *, applied: bool) -> Iterator[None]:
    commit_tables = EmbeddedCatalog.commit_tables

    def answering(self: EmbeddedCatalog, requests: Any) -> Any:
        if applied:
            commit_tables(self, requests)
        raise error

    with mock.patch.object(EmbeddedCatalog, "commit_tables", answering):
        yield


def test_lost_response_is_resolved_as_committed(catalog: tf.Catalog) -> None:
    """CP-77."""
    with commit_tables_raises(OSError("no answer"), applied=True):
        results = change_order(catalog)
    assert state(catalog) == AFTER
    assert {each.added_row_count for each in results.values()} == {1}


def test_unapplied_request_without_response_keeps_its_files(catalog: tf.Catalog, tmp_path: Path) -> None:
    """CP-77: it may be applied yet. The repetition of the batch commits it once."""
    before = files(tmp_path)
    with (
        commit_tables_raises(OSError("no answer"), applied=False),
        pytest.raises(CommitStateUnknownError),
    ):
        change_order(catalog, **BATCH)
    assert state(catalog) == BEFORE
    assert len(files(tmp_path) - before) >= 6, "data, deletes and manifests of both"
    change_order(catalog, **BATCH)
    assert state(catalog) == AFTER


@pytest.mark.parametrize("applied", [True, False])
def test_interrupted_request_keeps_the_files(catalog: tf.Catalog, applied: bool) -> None:
    """CP-51, CP-77."""
    with commit_tables_raises(KeyboardInterrupt(), applied=applied), pytest.raises(CommitInterruptedError):
        change_order(catalog)
    assert state(catalog) == (AFTER if applied else BEFORE)
    assert all(catalog.load_table(name).verify(deep=True).is_clean for name in AFTER)


def test_a_refused_request_changes_nothing(catalog: tf.Catalog, tmp_path: Path) -> None:
    before = files(tmp_path)
    refusal = StorageError("disk full", nothing_changed=True)
    with commit_tables_raises(refusal, applied=False), pytest.raises(StorageError, match="disk full"):
        change_order(catalog)
    assert (state(catalog), files(tmp_path)) == (BEFORE, before)


def test_concurrently_dropped_table_aborts_the_transaction(catalog: tf.Catalog) -> None:
    """CP-77, LK-17."""
    with pytest.raises(TableNotFoundError), before_the_request(lambda: catalog.drop_table("db.lines")):
        change_order(catalog)
    assert rows_of(catalog, "db.orders") == BEFORE["db.orders"]


FOREIGN: dict[str, Callable[[Path], Any]] = {
    "in memory": lambda directory: InMemoryCatalog("memory", warehouse=f"file://{directory}/warehouse"),
    "SQL": lambda directory: SqlCatalog(
        "prod", uri=f"sqlite:///{directory}/names.db", warehouse=f"file://{directory}/warehouse"
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_unsupported_catalogs_reject_a_second_table(tmp_path: Path, kind: str) -> None:
    """LK-36: with their name, before anything of it is written."""
    catalog = filled(tf.Catalog(FOREIGN[kind](tmp_path)))
    before = files(tmp_path)
    with pytest.raises(SeveralTablesError, match=f"catalog '{catalog.iceberg.name}' .*Nothing was changed"):
        change_order(catalog)
    assert (state(catalog), files(tmp_path)) == (BEFORE, before)


@pytest.mark.parametrize("kind", FOREIGN)
def test_single_table_transaction_works_in_every_catalog(tmp_path: Path, kind: str) -> None:
    """LK-36."""
    catalog = filled(tf.Catalog(FOREIGN[kind](tmp_path)))
    for applied in (False, True):
        with catalog.transaction(**BATCH) as tx:
            tx.table("db.orders").replace(orders((1, "Eve")))
            tx.table(("db", "orders")).append(orders((3, "Zoe")))
        assert tx.results["db.orders"].already_applied is applied
    assert rows_of(catalog, "db.orders") == [*AFTER["db.orders"], (3, "Zoe")]


def test_tables_are_changed_on_their_branches(catalog: tf.Catalog) -> None:
    catalog.load_table("db.orders").create_branch("audit")
    with catalog.transaction() as tx:
        tx.table("db.orders", branch="audit").append(orders((3, "Zoe")))
        tx.table("db.lines").append(lines((3, 1, 1)))
        with pytest.raises(InvalidArgumentError, match="branch"):
            tx.table("db.orders")
    assert rows_of(catalog, "db.orders") == BEFORE["db.orders"]
    assert catalog.load_table("db.orders", branch="audit").scan().count() == 3


def test_rejected_rows_of_one_table_abort_all(catalog: tf.Catalog) -> None:
    catalog.load_table("db.lines").add_check("positive", "amount > 0")

    def change() -> None:
        with catalog.transaction() as tx:
            tx.table("db.orders").replace(orders((1, "Eve")))
            tx.table("db.lines").append(lines((1, 3, -1)))

    with pytest.raises(tf.errors.RowsRefusedError):
        change()
    assert state(catalog) == BEFORE


def test_if_unchanged_since_is_not_supported_for_several_tables(catalog: tf.Catalog) -> None:
    """CP-83"""
    read = catalog.load_table("db.orders").snapshot_id
    with (
        pytest.raises(InvalidArgumentError, match=r"if_unchanged_since.*table\.transaction"),
        catalog.transaction(if_unchanged_since=read) as tx,
    ):
        tx.table("db.orders").delete("true")
    assert catalog.load_table("db.orders").snapshot_id == read
