"""Commits that change only metadata, without a new snapshot: expired snapshots, refs, properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, cast

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertLastAssignedFieldId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetPartitionStatisticsUpdate,
    SetSnapshotRefUpdate,
    SetStatisticsUpdate,
    TableRequirement,
    TableUpdate,
    ValidatableTableRequirement,
)

from tableformat.commit.commit_status import CommitStatus, Sent
from tableformat.commit.read_only import refuse_read_only
from tableformat.commit.rest_catalog import is_rest
from tableformat.commit.retry import retry_lost_races
from tableformat.errors import CommitConflictError
from tableformat.metadata.newest import move_to_newest
from tableformat.properties import is_synced
from tableformat.storage.storage import sync_files

PrepareUpdates: TypeAlias = Callable[[Table], tuple[Sequence[TableUpdate], Sequence[TableRequirement]]]
"""(the current table of the catalog) -> updates and their requirements; without updates there is nothing to commit."""


def commit_metadata(
    table: Table, prepare: PrepareUpdates, *, status: CommitStatus | None = None
) -> tuple[TableMetadata, TableMetadata]:
    """Commit the updates, which are prepared on the newest metadata at each attempt, and move the handle to the result.

    Returns the metadata before and after the updates; the same metadata twice if there was nothing to commit. Raises
    CommitConflictError after too many lost races. Raises CommitStateUnknownError if the catalog neither applied nor
    refused the request, or was interrupted (CP-13, CP-51). Raises UnsupportedFeatureError for a table without a
    catalog.
    """
    status = status or CommitStatus()
    status.subject = ".".join(table.name())

    def attempt() -> tuple[TableMetadata, TableMetadata]:
        refresh(table)
        base = table.metadata
        updates, requirements = prepare(table)
        if not updates:
            return base, base
        guarded = (AssertTableUUID(uuid=base.table_uuid), *requirements)
        if is_synced(base.properties):
            sync_files(table.io, _statistics_files(updates))
        status.sent = Sent.IN_FLIGHT
        try:
            response = table.catalog.commit_table(table, guarded, tuple(updates))
        except CommitFailedException:
            status.sent = Sent.NO
            raise
        except ValueError as error:
            # PyIceberg's catalogs apply the updates before they write anything. An update that does not fit the newest
            # metadata, such as the removal of a missing snapshot, was therefore refused.
            status.sent = Sent.NO
            raise CommitFailedException(str(error)) from error
        except BaseException as error:
            raise status.told(error) from error
        status.sent = Sent.APPLIED
        table.metadata = response.metadata
        table.metadata_location = response.metadata_location
        return base, response.metadata

    try:
        return retry_lost_races(attempt, table)
    except CommitFailedException as error:
        raise CommitConflictError(
            f"the change of {'.'.join(table.name())} lost the race against other writers: {error}. Nothing was "
            "changed. Run the job again."
        ) from error


def _statistics_files(updates: Sequence[TableUpdate]) -> Iterator[str]:
    """The statistics files that the updates reference for the first time."""
    for update in updates:
        if isinstance(update, SetStatisticsUpdate):
            yield update.statistics.statistics_path
        elif isinstance(update, SetPartitionStatisticsUpdate):
            yield update.partition_statistics.statistics_path


def refresh(table: Table) -> None:
    """Move the handle to the newest metadata. Raises UnsupportedFeatureError for a table without a catalog."""
    refuse_read_only(table)
    move_to_newest(table)


def refs_are_unchanged(table: Table, *, but_gone: Sequence[str] = ()) -> tuple[TableRequirement, ...]:
    """MT-2: every ref is unchanged, the names in `but_gone` are still free, and no ref was created.

    Catalogs drop refs to removed snapshots, even a ref that was created a moment ago. Catalog servers cannot check that
    no ref was created, so they get only the other requirements.
    """
    refs = {name: ref.snapshot_id for name, ref in table.metadata.refs.items()}
    named = tuple(assert_ref(name, snapshot_id) for name, snapshot_id in refs.items())
    gone = tuple(assert_ref(name, None) for name in but_gone if name not in refs)
    return (*named, *gone, *no_ref_came(table))


def no_ref_came(table: Table) -> tuple[TableRequirement, ...]:
    """The requirement that the table has only the refs of the handle, for catalogs that check requirements in this
    process."""
    if is_rest(table.catalog):
        return ()
    # PyIceberg's union of requirements lists only requirements that a catalog server knows.
    return (cast(TableRequirement, _NoRefCame(known=tuple(table.metadata.refs))),)


def assert_ref(name: str, snapshot_id: int | None) -> AssertRefSnapshotId:
    """The requirement that a ref points to a snapshot, or, if None, that the ref does not exist."""
    return AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": snapshot_id})


def branch_at(metadata: TableMetadata, name: str, snapshot_id: int) -> SetSnapshotRefUpdate:
    """The update that moves a branch to a snapshot and keeps its retention settings, or creates it."""
    current = metadata.refs.get(name)
    return SetSnapshotRefUpdate.model_validate(
        {
            "ref-name": name,
            "type": SnapshotRefType.BRANCH,
            "snapshot-id": snapshot_id,
            "max-ref-age-ms": current.max_ref_age_ms if current is not None else None,
            "max-snapshot-age-ms": current.max_snapshot_age_ms if current is not None else None,
            "min-snapshots-to-keep": current.min_snapshots_to_keep if current is not None else None,
        }
    )


def ids_of_schemas_are_free(
    base: TableMetadata, updates: Sequence[TableUpdate], catalog: Catalog
) -> tuple[TableRequirement, ...]:
    """CP-50: the requirements of a commit that adds a schema based on the schemas of `base`.

    A catalog server assigns its own id to a new schema.
    """
    if not any(isinstance(update, AddSchemaUpdate) for update in updates):
        return ()
    columns = AssertLastAssignedFieldId.model_validate({"last-assigned-field-id": base.last_column_id})
    if is_rest(catalog):
        return (columns,)
    # PyIceberg's union of requirements lists only requirements that a catalog server knows.
    return (columns, cast(TableRequirement, _NoSchemaCame(last_schema_id=_last_schema_id(base))))


def _last_schema_id(metadata: TableMetadata) -> int:
    return max(schema.schema_id for schema in metadata.schemas)


class _NoSchemaCame(ValidatableTableRequirement):
    """Checked by catalogs that check requirements in this process."""

    type: str = "assert-no-other-schema"
    last_schema_id: int

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override] # as PyIceberg's own
        """Raises CommitFailedException if an unknown schema was added."""
        if base_metadata is not None and _last_schema_id(base_metadata) != self.last_schema_id:
            raise CommitFailedException("Requirement failed: the columns were changed concurrently, and changed back")


class _NoRefCame(ValidatableTableRequirement):
    """Checked by catalogs that check requirements in this process."""

    type: str = "assert-no-other-refs"
    known: tuple[str, ...]

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override] # as PyIceberg's own
        """Raises CommitFailedException if an unknown ref exists."""
        new = set(base_metadata.refs if base_metadata is not None else ()) - set(self.known)
        if new:
            raise CommitFailedException(f"Requirement failed: {', '.join(sorted(new))} was created concurrently")
