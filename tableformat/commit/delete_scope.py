"""Decides when a blind delete may be limited to one partition."""

from __future__ import annotations

from tableformat.commit.change import TableChange
from tableformat.deletes.rules import is_unpartitioned
from tableformat.errors import CommitConflictError
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.snapshot_view import SnapshotView


def only_default_spec_has_data(view: SnapshotView) -> bool:
    """Whether every live data file was written under the table's default partition spec.

    Decides from the manifest list alone. Rows of older specs lie in other partitions (DA-3), where a delete that is
    limited to a partition of the default spec would miss them.
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
    """CP-12: a new delete that is limited to a partition needs the default spec to be the only one with live data
    files.

    Raises CommitConflictError; the caller prepares the deletes again as global ones. The commit asserts the default
    spec id.
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
            f"deletes limited to partitions of {subject} cannot commit: the table holds data files of another "
            f"partition spec than {default_spec_id}, its default, and the deletes would miss their rows. Nothing was "
            "changed. Run the operation again; it will write global deletes."
        )
