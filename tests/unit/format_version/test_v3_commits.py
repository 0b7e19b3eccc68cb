"""Row deletes of version 3 with concurrent commits of others, including an upgrade."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from commit_tables import FaultyCatalog
from pyiceberg.table.snapshots import Operation
from v3_tables import ids, new_table, rows, vectors

import tableformat as tf
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitConflictError
from tableformat.metadata.content_file import DeleteKind
from tableformat.testing.table_files import files_on_disk, live_delete_files


@pytest.fixture
def faulty(tmp_path: Path) -> FaultyCatalog:
    backend = FaultyCatalog.at(tmp_path / "lake")
    backend.create_namespace("db")
    return backend


def filled(backend: FaultyCatalog, version: int) -> tf.Table:
    table = new_table(tf.Catalog(backend), version)
    table.append(rows("a", 1, 2, 3, 4, 5))
    table.append(rows("b", 1, 2, 3, 4, 5))
    return table


def once(backend: FaultyCatalog, interfere: Callable[[tf.Table], object]) -> None:
    """Run `interfere` on another handle of the table before the next commit reaches the catalog."""

    def before() -> None:
        backend.before = None
        interfere(tf.Catalog(backend).load_table("db.t"))

    backend.before = before


def assert_only_vectors(table: tf.Table) -> None:
    """No position delete file, not even one that nothing names."""
    assert {delete.kind for delete in live_delete_files(table)} == {DeleteKind.DELETION_VECTOR}
    assert files_on_disk(table, "-deletes.parquet") == set()
    assert files_on_disk(table, ".puffin") == {vector.file_path for vector in vectors(table).values()}


def test_position_deletes_become_vectors_on_concurrent_upgrade(faulty: FaultyCatalog) -> None:
    """CP-19: without running the operation again."""
    table = filled(faulty, 2)
    once(faulty, lambda other: other.upgrade())
    result = table.delete("id = 2 OR id = 3", mode="scan")
    assert (result.attempts, result.deleted_row_count, result.added_delete_files_count) == (2, 4, 2)
    assert_only_vectors(table)
    assert ids(table) == [(region, number) for region in "ab" for number in (1, 4, 5)]


def test_unrepeatable_transaction_survives_an_upgrade(faulty: FaultyCatalog) -> None:
    """CP-19: its rows come from a reader that is exhausted."""
    table = filled(faulty, 2)
    once(faulty, lambda other: other.upgrade())
    with table.transaction() as transaction:
        transaction.append(rows("c", 1, 2, 3).to_reader())
        transaction.delete("id = 2", mode="scan")
        transaction.delete_prefix({"region": "b"})
        transaction.delete_prefix({"region": "c", "id": 3})
    assert ids(table) == [("a", 1), ("a", 3), ("a", 4), ("a", 5), ("c", 1)]
    assert {delete.kind for delete in live_delete_files(table)} == {DeleteKind.DELETION_VECTOR, DeleteKind.RANGE}
    assert files_on_disk(table, "-deletes.parquet") == files_on_disk(table, "-range-deletes.parquet")


def test_a_conversion_survives_an_upgrade(faulty: FaultyCatalog) -> None:
    """CP-19, decision 13."""
    table = filled(faulty, 2)
    table.delete_prefix({"region": "a", "id": 2})
    table.delete_rows(pa.table({"note": ["b4"]}))
    once(faulty, lambda other: other.upgrade())
    result = table.maintenance.convert_deletes()
    assert (result.added_deletion_vectors_count, result.added_position_delete_files_count) == (2, 0)
    assert {delete.kind for delete in live_delete_files(table)} == {DeleteKind.DELETION_VECTOR}
    assert ids(table) == [("a", 1), ("a", 3), ("a", 4), ("a", 5), ("b", 1), ("b", 2), ("b", 3), ("b", 5)]


def test_positions_deleted_just_before_upgrade_stay_deleted(faulty: FaultyCatalog) -> None:
    """CP-10, CP-19: a vector with only our positions would bring their row back, so the operation runs again."""
    table = filled(faulty, 2)

    def interfere(other: tf.Table) -> None:
        other.delete("id = 4", mode="scan")
        other.upgrade()

    once(faulty, interfere)
    result = table.delete("id = 2 OR id = 4", mode="scan")
    assert result.deleted_row_count == 2
    assert ids(table) == [(region, number) for region in "ab" for number in (1, 3, 5)]
    assert {delete.kind for delete in live_delete_files(table)} == {DeleteKind.DELETION_VECTOR}
    assert sorted(vector.record_count for vector in vectors(table).values()) == [2, 2]


def test_a_blind_write_survives_an_upgrade(faulty: FaultyCatalog) -> None:
    table = filled(faulty, 2)
    once(faulty, lambda other: other.upgrade())
    table.upsert(rows("a", 1, 9, note="new "))
    assert ids(table) == [("a", number) for number in (1, 2, 3, 4, 5, 9)] + [("b", n) for n in range(1, 6)]
    assert table.metadata.format_version == 3


def test_concurrent_deletes_in_one_file_are_merged(faulty: FaultyCatalog) -> None:
    """CP-10: the second vector must contain the rows of the first one; the operation runs again."""
    table = filled(faulty, 3)
    once(faulty, lambda other: other.delete("id = 4", mode="scan"))
    table.delete("id = 2", mode="scan")
    assert ids(table) == [(region, number) for region in "ab" for number in (1, 3, 5)]
    assert sorted(vector.record_count for vector in vectors(table).values()) == [2, 2]


def test_concurrent_deletes_in_different_files(faulty: FaultyCatalog) -> None:
    table = filled(faulty, 3)
    once(faulty, lambda other: other.delete("note = 'b4'", mode="scan"))
    result = table.delete("note = 'a2'", mode="scan")
    assert result.attempts == 2
    assert sorted(vector.record_count for vector in vectors(table).values()) == [1, 1]


def test_unrepeatable_transaction_with_newer_vector_conflicts(faulty: FaultyCatalog) -> None:
    """CP-10: and leaves neither files nor changes behind."""
    table = filled(faulty, 3)
    once(faulty, lambda other: other.delete("note = 'a4'", mode="scan"))
    with (
        pytest.raises(CommitConflictError),
        table.transaction() as transaction,
    ):
        transaction.delete("note = 'a2'", mode="scan")
    table.refresh()
    assert ("a", 2) in ids(table)
    assert ("a", 4) not in ids(table)
    assert_only_vectors(table)


def test_conversion_merges_a_concurrent_vector(faulty: FaultyCatalog) -> None:
    """CP-10: it plans again, and the vector it writes holds both."""
    table = filled(faulty, 3)
    table.delete_prefix({"region": "a", "id": 2})
    once(faulty, lambda other: other.delete("note = 'a4'", mode="scan"))
    result = table.maintenance.convert_deletes()
    assert (result.added_deletion_vectors_count, result.removed_deletion_vectors_count) == (1, 1)
    assert ids(table)[:3] == [("a", 1), ("a", 3), ("a", 5)]


def test_removed_vector_to_be_replaced_conflicts(faulty: FaultyCatalog) -> None:
    """CP-4: a change that merges a removed entry would merge outdated positions."""
    table = filled(faulty, 3)
    table.delete("note = 'a4'", mode="scan")
    (old,) = vectors(table).values()

    def drop_vector(other: tf.Table) -> None:
        change = TableChange(
            operation=Operation.OVERWRITE,
            kind=ChangeKind.DELETE_REWRITE,
            removed_delete_files=(old,),
            planned_snapshot_id=other.snapshot_id,
        )
        commit_change(other.iceberg, change)

    once(faulty, drop_vector)
    with pytest.raises(CommitConflictError), table.transaction() as transaction:
        transaction.delete("note = 'a2'", mode="scan")


def test_row_ids_assigned_concurrently_are_kept(faulty: FaultyCatalog) -> None:
    """A manifest that an earlier attempt wrote before the ids were assigned must not be used again."""
    table = new_table(tf.Catalog(faulty), 2, partition_by=["region"])
    table.append(pa.concat_tables([rows("a", 1, 2), rows("b", 1, 2)]))
    table.upgrade()
    assigned: list[list[int]] = []

    def interfere(other: tf.Table) -> None:
        other.append(rows("c", *range(7)))
        assigned.append(other.scan("region = 'b'", columns=["_row_id"]).to_arrow()["_row_id"].to_pylist())

    once(faulty, interfere)
    with table.transaction() as transaction:
        transaction.delete("region = 'a'", mode="scan")
    kept = table.scan("region = 'b'", columns=["_row_id"]).to_arrow()["_row_id"].to_pylist()
    assert [kept] == assigned
    assert None not in kept
