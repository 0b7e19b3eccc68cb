"""Decides whether a blind delete may be limited to one partition, and whether its columns still exist in the table."""

from __future__ import annotations

from collections.abc import Iterable

from tableformat.commit.change import TableChange
from tableformat.deletes.rules import is_unpartitioned
from tableformat.errors import CommitConflictError
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.snapshot_view import SnapshotView


def only_default_spec_has_data(view: SnapshotView) -> bool:
    """Whether every live data file was written under the default partition spec of the table.

    Reads only the manifest list. Rows of older specs lie in other partitions (DA-3), so a delete that is limited to a
    partition of the default spec would miss them.
    """
    default_spec_id = view.metadata.default_spec_id
    return all(
        manifest.partition_spec_id == default_spec_id
        for manifest in manifests_of(view)
        if manifest.content is ManifestContent.DATA and manifest.has_live_files
    )


def has_partition_scoped_deletes(change: TableChange, view: SnapshotView) -> bool:
    """Whether the change adds equality or range deletes that apply to one partition only."""
    return any(not is_unpartitioned(view.spec(delete.spec_id)) for delete in change.scoped_deletes)


def check_delete_scope(change: TableChange, view: SnapshotView, subject: str) -> None:
    """CP-12: a new delete that is limited to a partition requires that all live data files have the default spec.

    Raises CommitConflictError; the caller then prepares the deletes again as global ones. The commit asserts the
    default spec id.
    """
    if not has_partition_scoped_deletes(change, view):
        return
    default_spec_id = view.metadata.default_spec_id
    foreign = [
        delete.file_path
        for delete in change.scoped_deletes
        if delete.spec_id != default_spec_id and not is_unpartitioned(view.spec(delete.spec_id))
    ]
    if foreign or not only_default_spec_has_data(view):
        raise CommitConflictError(
            f"partition-scoped deletes of {subject} cannot commit: the table has data files of a partition spec "
            f"other than its default, {default_spec_id}, and the deletes would miss their rows. Nothing was changed. "
            "Run the operation again; it will write global deletes."
        )


def check_delete_columns(change: TableChange, view: SnapshotView, subject: str) -> None:
    """CP-35: the columns of a new keyed delete exist in the table.

    Raises CommitConflictError. The commit asserts the schema id, so that no column is dropped at the moment of the
    commit.
    """
    check_columns_are_there(
        [each for delete in change.scoped_deletes for each in delete.equality_ids or ()], view, subject
    )


def check_columns_are_there(field_ids: Iterable[int], view: SnapshotView, subject: str) -> None:
    """CP-35: raise CommitConflictError if a column of a delete was dropped from the table."""
    current = frozenset(view.metadata.schema().field_ids)
    dropped = sorted({field_id for field_id in field_ids if field_id not in current})
    if dropped:
        names = " and ".join(_name_of(field_id, view) for field_id in dropped)
        raise CommitConflictError(
            f"deletes of {subject} by {names} cannot commit: a concurrent commit dropped {names}, so rows written "
            "since then have no such value. Nothing was changed. Delete by columns that the table has."
        )


def _name_of(field_id: int, view: SnapshotView) -> str:
    """The last name of a dropped column."""
    names = (schema.find_column_name(field_id) for schema in reversed(view.metadata.schemas))
    return next((repr(name) for name in names if name is not None), f"the column with id {field_id}")
