"""Creates a branch if `main` has no snapshot. The branch starts with a snapshot without files, so that rows can be
written to it."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import AddSnapshotUpdate, TableRequirement, TableUpdate

from tableformat.commit.change import TableChange
from tableformat.commit.commit_status import CommitStatus, removing_on_failure
from tableformat.commit.leftovers import remove_leftovers
from tableformat.commit.metadata_commit import assert_ref, commit_metadata
from tableformat.commit.snapshot_producer import SnapshotProducer
from tableformat.errors import CommitConflictError
from tableformat.metadata.snapshot_choice import head_view
from tableformat.operations.history.references import RefRetention, check_free_name, checked_ref, set_ref


def create_empty_branch(iceberg: IcebergTable, name: str, retention: RefRetention) -> None:
    """Create a branch with its own snapshot, without files and without a parent, like Iceberg's engines. `main` stays
    without a snapshot. Raises CommitConflictError if `main` has one in the meantime; the written files are then
    removed."""
    producer = SnapshotProducer(iceberg.metadata, {})

    def prepare(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
        if MAIN_BRANCH in table.metadata.refs:
            raise CommitConflictError(
                f"another commit added a snapshot to {'.'.join(table.name())} concurrently. Nothing was changed. Run "
                "the statement again."
            )
        check_free_name(table, name, SnapshotRefType.BRANCH)
        # PyIceberg's catalogs accept no requirement on another branch for a table without snapshots.
        guarded = (MAIN_BRANCH, name) if table.metadata.snapshots else (MAIN_BRANCH,)
        requirements = tuple(assert_ref(each, None) for each in guarded)
        snapshot = producer.produce(head_view(table.metadata, table.io), TableChange(operation=Operation.APPEND))
        ref = checked_ref(SnapshotRefType.BRANCH, snapshot.snapshot_id, retention)
        return (AddSnapshotUpdate(snapshot=snapshot), set_ref(name, ref)), requirements

    status = CommitStatus()
    with removing_on_failure(status, lambda: remove_leftovers(iceberg.io, producer.written_locations)):
        commit_metadata(iceberg, prepare, status=status)
