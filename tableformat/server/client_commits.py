"""Turns a client's commit on served metadata into a commit of the catalog.

    served       main at s8, the conversion of s7
    client       requires main at s8, adds s9 on it, moves main to s9
    catalog      requires main at s7, moves main to s8, adds s9, moves main to s9: one commit

A client that committed on the conversion of an older head gets a conflict, which it retries (SV-9).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeGuard

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotsUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from tableformat.commit.metadata_commit import assert_ref, branch_at, no_ref_came
from tableformat.commit.rest_catalog import is_rest
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.staged_conversions import source_of, staged_conversions

_COMPARED_IDS: Final = (
    (AssertLastAssignedFieldId, "last assigned field id", "last_assigned_field_id", "last_column_id"),
    (AssertCurrentSchemaId, "current schema", "current_schema_id", "current_schema_id"),
    (
        AssertLastAssignedPartitionId,
        "last assigned partition id",
        "last_assigned_partition_id",
        "last_partition_id",
    ),
    (AssertDefaultSpecId, "default partition spec", "default_spec_id", "default_spec_id"),
    (AssertDefaultSortOrderId, "default sort order", "default_sort_order_id", "default_sort_order_id"),
)
"""Requirements that compare one id: what a message calls it, its name in the requirement, and in the metadata."""


def catalog_commit(
    metadata: TableMetadata, requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]
) -> tuple[tuple[TableRequirement, ...], tuple[TableUpdate, ...]]:
    """The requirements and updates for the catalog, whose current metadata is `metadata`.

    Raises CommitFailedException if the client committed on the conversion of an earlier head.
    """
    head_id = metadata.current_snapshot_id
    staged = staged_conversions(metadata).get(head_id) if head_id is not None else None
    moves_main = staged is not None and _needs_conversion(requirements, updates, staged, head_id)
    required = tuple(_real(each, metadata, staged) for each in requirements)
    known = tuple(each for update in updates for each in _without_unknown(update, metadata))
    if staged is None or not moves_main:
        _check_keeps_head(known, head_id)
        return required, known
    head_is = assert_ref(MAIN_BRANCH, head_id)
    others = tuple(each for each in required if not _is_about_main(each))
    return (*others, head_is), (branch_at(metadata, MAIN_BRANCH, staged.snapshot_id), *known)


def check_requirements(metadata: TableMetadata, requirements: Sequence[TableRequirement]) -> None:
    """Raise CommitFailedException if the table is not in the state that the client requires. The messages are those of
    Iceberg's Java library, which some clients search."""
    for requirement in requirements:
        problem = _unmet(metadata, requirement)
        if problem is not None:
            raise CommitFailedException(f"Requirement failed: {problem}")


def for_catalog(table: Table, requirements: Sequence[TableRequirement]) -> tuple[TableRequirement, ...]:
    """Checked requirements, as the catalog of the table checks them again.

    PyIceberg 0.12 refuses every branch but `main` in a table without snapshots. There the catalog checks that the table
    has no ref.
    """
    if table.metadata.snapshots or is_rest(table.catalog):
        return tuple(requirements)
    others = tuple(each for each in requirements if not isinstance(each, AssertRefSnapshotId))
    return others if len(others) == len(requirements) else (*others, *no_ref_came(table))


def _unmet(metadata: TableMetadata, requirement: TableRequirement) -> str | None:
    if isinstance(requirement, AssertCreate):
        return "table already exists"
    if isinstance(requirement, AssertTableUUID):
        return _difference("UUID does not match: expected", metadata.table_uuid, requirement.uuid)
    if isinstance(requirement, AssertRefSnapshotId):
        return _unmet_ref(metadata, requirement)
    for kind, subject, stated, known in _COMPARED_IDS:
        if isinstance(requirement, kind):
            return _difference(
                f"{subject} changed: expected id", getattr(requirement, stated), getattr(metadata, known)
            )
    raise InvalidArgumentError(f"requirement {requirement.type!r} is unknown.")


def _unmet_ref(metadata: TableMetadata, requirement: AssertRefSnapshotId) -> str | None:
    ref, wanted = metadata.refs.get(requirement.ref), requirement.snapshot_id
    if ref is None:
        return None if wanted is None else f"branch or tag {requirement.ref} is missing, expected {wanted}"
    kind = ref.snapshot_ref_type.value
    if wanted is None:
        return f"{kind} {requirement.ref} was created concurrently"
    return _difference(f"{kind} {requirement.ref} has changed: expected id", wanted, ref.snapshot_id)


def _difference(expected: str, wanted: object, found: object) -> str | None:
    return None if wanted == found else f"{expected} {wanted} != {found}"


def _needs_conversion(
    requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate], staged: Snapshot, head_id: int | None
) -> bool:
    """Whether the conversion becomes the head first: the client committed on it, or removes its source."""
    on_conversion = any(_is_about_main(each) and each.snapshot_id == staged.snapshot_id for each in requirements)
    removes_source = any(
        isinstance(update, RemoveSnapshotsUpdate) and head_id in update.snapshot_ids for update in updates
    )
    return on_conversion or removes_source


def _real(requirement: TableRequirement, metadata: TableMetadata, staged: Snapshot | None) -> TableRequirement:
    """The requirement in terms of the catalog's own snapshots."""
    if not _is_about_main(requirement) or requirement.snapshot_id is None:
        return requirement
    seen = snapshot_by_id(metadata, requirement.snapshot_id)
    source_id = source_of(seen) if seen is not None else None
    if source_id is None or seen is None or seen.snapshot_id == metadata.current_snapshot_id:
        return requirement
    if staged is None or seen.snapshot_id != staged.snapshot_id:
        raise CommitFailedException(
            f"Requirement failed: branch main has changed: the table moved on from snapshot {source_id}, whose "
            f"conversion is {seen.snapshot_id}"
        )
    return assert_ref(MAIN_BRANCH, source_id)


def _without_unknown(update: TableUpdate, metadata: TableMetadata) -> Sequence[TableUpdate]:
    """The update without snapshots that the table no longer has: another client or the server removed them."""
    if not isinstance(update, RemoveSnapshotsUpdate):
        return (update,)
    known = [each for each in update.snapshot_ids if snapshot_by_id(metadata, each) is not None]
    return (update.model_copy(update={"snapshot_ids": known}),) if known else ()


def _check_keeps_head(updates: Sequence[TableUpdate], head_id: int | None) -> None:
    """Raise CommitFailedException if the head of `main` would be removed: the client saw an older state."""
    moved = any(isinstance(update, SetSnapshotRefUpdate) and update.ref_name == MAIN_BRANCH for update in updates)
    removed = {each for update in updates if isinstance(update, RemoveSnapshotsUpdate) for each in update.snapshot_ids}
    if head_id in removed and not moved:
        raise CommitFailedException(f"Requirement failed: snapshot {head_id} is the head of main and cannot be removed")


def _is_about_main(requirement: TableRequirement) -> TypeGuard[AssertRefSnapshotId]:
    return isinstance(requirement, AssertRefSnapshotId) and requirement.ref == MAIN_BRANCH
