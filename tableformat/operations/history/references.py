"""Tags, branches, rollback and table properties: commits of metadata without a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from tableformat.commit.coverage_change import coverage_is, property_updates
from tableformat.commit.idempotence import batches_of_snapshots
from tableformat.commit.metadata_commit import assert_ref, ids_of_schemas_are_free
from tableformat.commit.publish_target import published_to
from tableformat.commit.read_only import refuse_read_only
from tableformat.commit.retry import retry_lost_races
from tableformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidArgumentError,
    SnapshotNotFoundError,
    UnknownOptionError,
    nearest_hint,
)
from tableformat.metadata.new_names import check_new_ref_name
from tableformat.metadata.newest import move_to_newest, newest_of
from tableformat.metadata.own_handle import own_handle
from tableformat.metadata.snapshot_choice import ancestors, view_at
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.format_version import (
    FORMAT_VERSION,
    refusals_of_version,
    requested_format_version,
    upgrade_to,
)
from tableformat.parquet.bloom_filters.filter_options import check_filter_columns
from tableformat.parquet.metrics_modes import METRICS
from tableformat.properties import ORDER_COLUMN, RANGE_PARTITIONS, RETIRED_PREFIX, checked_properties
from tableformat.range_partitions.property_text import check_metrics, refuse_coverage_set_by_hand
from tableformat.range_partitions.retention import check_retention
from tableformat.range_partitions.summary import COVERAGE_BEFORE
from tableformat.write.rows.checks import is_check_property, refuse_check_set_by_hand
from tableformat.write.rows.order_column import check_order_column


def create_tag(iceberg: IcebergTable, name: str, view: SnapshotView, max_ref_age_ms: int | None) -> None:
    """Create a tag. Raises AlreadyExistsError if the name is in use, SnapshotNotFoundError for a table without
    snapshots."""
    _create(iceberg, name, _ref(_snapshot_id(view), SnapshotRefType.TAG, max_ref_age_ms))


def new_tag(name: str, snapshot_id: int) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
    """The update that creates a tag as part of another commit, and the requirement that its name is free."""
    ref = _ref(snapshot_id, SnapshotRefType.TAG, None)
    return (set_ref(name, ref),), (assert_ref(name, None),)


def create_branch(iceberg: IcebergTable, name: str, view: SnapshotView) -> None:
    """Create a branch. Raises AlreadyExistsError if the name is in use, SnapshotNotFoundError for a table without
    snapshots."""
    _create(iceberg, name, _ref(_snapshot_id(view), SnapshotRefType.BRANCH, None))


@dataclass(frozen=True, slots=True, kw_only=True)
class RefRetention:
    """How long a ref is kept, and the snapshots of a branch with it. For None, the table's properties decide."""

    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    """For a branch: the number of newest snapshots that are kept at any age."""
    max_snapshot_age_ms: int | None = None
    """For a branch: the maximum age of its snapshots."""


def new_ref(iceberg: IcebergTable, name: str, kind: str, snapshot_id: int, retention: RefRetention) -> None:
    """Create a branch or tag at a snapshot of the table. Raises AlreadyExistsError if the name is in use."""
    _create(iceberg, name, checked_ref(kind, snapshot_id, retention))


def replace_ref(iceberg: IcebergTable, name: str, kind: str, snapshot_id: int | None, retention: RefRetention) -> None:
    """Move a branch or tag to any snapshot, or leave it where it is (None), and set the given retention values; the
    other values stay unchanged.

    Raises SnapshotNotFoundError if the ref does not exist. Raises InvalidArgumentError for a branch to which others are
    published (MT-30): publishing converts deletes, moving does not.
    """
    metadata = iceberg.metadata
    ref = ref_of_kind(metadata, name, kind)
    if snapshot_id not in (None, ref.snapshot_id):
        _refuse_publish_target(iceberg, name)
    target_id = ref.snapshot_id if snapshot_id is None else snapshot_id
    said = {key: value for key, value in asdict(retention).items() if value is not None}
    replaced = checked_ref(
        kind,
        target_id,
        RefRetention(
            **{
                "max_ref_age_ms": ref.max_ref_age_ms,
                "min_snapshots_to_keep": ref.min_snapshots_to_keep,
                "max_snapshot_age_ms": ref.max_snapshot_age_ms,
            }
            | said
        ),
    )
    is_head = kind == SnapshotRefType.BRANCH
    restored, unchanged = _coverage_of(iceberg, target_id, ref.snapshot_id) if is_head else ((), ())
    commit_updates(iceberg, (assert_ref(name, ref.snapshot_id), *unchanged), (set_ref(name, replaced), *restored))


def ref_of_kind(metadata: TableMetadata, name: str, kind: str) -> SnapshotRef:
    """The branch or tag of this name. Otherwise raises SnapshotNotFoundError, with the nearest name."""
    refs = metadata.refs
    ref = refs.get(name)
    if ref is None or ref.snapshot_ref_type != kind:
        names = [other for other, candidate in refs.items() if candidate.snapshot_ref_type == kind]
        raise SnapshotNotFoundError(f"no {kind} {name!r}.{nearest_hint(name, names)}")
    return ref


def checked_ref(kind: str, snapshot_id: int, retention: RefRetention) -> SnapshotRef:
    """The ref with this retention. Raises InvalidArgumentError for a retention value below 1."""
    for name, value in asdict(retention).items():
        if value is not None and value < 1:
            raise InvalidArgumentError(f"the retention of a {kind}: {name} must be above 0, not {value}.")
    return SnapshotRef.model_validate(
        {
            "snapshot-id": snapshot_id,
            "type": kind,
            "max-ref-age-ms": retention.max_ref_age_ms,
            "min-snapshots-to-keep": retention.min_snapshots_to_keep,
            "max-snapshot-age-ms": retention.max_snapshot_age_ms,
        }
    )


def drop(iceberg: IcebergTable, name: str, kind: str) -> None:
    """Remove a tag or branch; its snapshots stay until they expire."""
    refuse_read_only(iceberg)
    if name not in iceberg.metadata.refs:
        move_to_newest(iceberg)
    ref = ref_of_kind(iceberg.metadata, name, kind)
    if name == MAIN_BRANCH:
        raise InvalidArgumentError("the branch 'main' cannot be dropped.")
    updates: tuple[TableUpdate, ...] = (RemoveSnapshotRefUpdate.model_validate({"ref-name": name}),)
    record = RETIRED_PREFIX + name
    if record in iceberg.metadata.properties:  # RP-31: without the tag, the files are not kept
        updates += (RemovePropertiesUpdate(removals=[record]),)
    commit_updates(iceberg, (assert_ref(name, ref.snapshot_id),), updates)


def rollback(iceberg: IcebergTable, branch: str, target: SnapshotView, *, replay: bool) -> None:
    """Move a branch back to an ancestor of its head.

    The batches of the removed snapshots stay recorded, so that a writer that repeats one does not commit it again.
    `replay` forgets them in the same commit.
    """
    metadata = iceberg.metadata
    head = metadata.refs.get(branch)
    target_id = _snapshot_id(target)
    if head is None:
        raise SnapshotNotFoundError(f"branch {branch!r} has no snapshot to roll back from.")
    line = [snapshot.snapshot_id for snapshot in ancestors(metadata, snapshot_by_id(metadata, head.snapshot_id))]
    if target_id not in line:
        raise InvalidArgumentError(
            f"snapshot {target_id} is not an ancestor of {head.snapshot_id}, the head of {branch!r}. Create a branch "
            "at it instead: create_branch(name, snapshot_id)."
        )
    undone = frozenset(line[: line.index(target_id)])
    moved = head.model_copy(update={"snapshot_id": target_id})
    updates: tuple[TableUpdate, ...] = (set_ref(branch, moved),)
    forgotten = batches_of_snapshots(metadata.properties, branch, undone) if replay else ()
    if forgotten:
        updates += (RemovePropertiesUpdate(removals=list(forgotten)),)
    restored, unchanged = _coverage_of(iceberg, target_id, head.snapshot_id)
    commit_updates(iceberg, (assert_ref(branch, head.snapshot_id), *unchanged), (*updates, *restored))


def _coverage_of(
    iceberg: IcebergTable, target_id: int, head_id: int
) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
    """RP-15: the range partitions before the oldest change between the target and the head. Empty if the target is not
    an ancestor, or if no snapshot changed them."""
    metadata = iceberg.metadata
    line = list(ancestors(metadata, snapshot_by_id(metadata, head_id)))
    ids = [snapshot.snapshot_id for snapshot in line]
    if target_id not in ids:
        return (), ()
    told = [
        text
        for snapshot in line[: ids.index(target_id)]
        if snapshot.summary is not None
        and (text := snapshot.summary.additional_properties.get(COVERAGE_BEFORE)) is not None
    ]
    now = metadata.properties.get(RANGE_PARTITIONS)
    before = (told[-1] or None) if told else now
    if before == now:
        return (), ()
    return property_updates(before), coverage_is(now, iceberg.catalog)


def set_current_snapshot(iceberg: IcebergTable, branch: str, target: SnapshotView) -> None:
    """Move a branch to any snapshot of the table, whether or not it is an ancestor of the head.

    The batches of all snapshots stay recorded: a writer that repeats one does not commit it again. Raises
    InvalidArgumentError for a branch to which others are published, unless it moves back (MT-30): publishing converts
    deletes, moving does not.
    """
    metadata, target_id = iceberg.metadata, _snapshot_id(target)
    head = metadata.refs.get(branch)
    line = () if head is None else ancestors(metadata, snapshot_by_id(metadata, head.snapshot_id))
    if all(snapshot.snapshot_id != target_id for snapshot in line):
        _refuse_publish_target(iceberg, branch)
    _move(iceberg, branch, target_id)


def fast_forward(iceberg: IcebergTable, branch: str, to: str) -> None:
    """Move `branch` forward to the current snapshot of the branch or tag `to`, which is read from the catalog. A
    missing branch is created.

    Raises InvalidArgumentError if `branch` has snapshots that `to` lacks, or if another branch is published to it
    (MT-30): publishing converts deletes, moving does not.
    """
    refuse_read_only(iceberg)
    move_to_newest(iceberg)
    metadata = iceberg.metadata
    target_id = _ref_named(metadata, to).snapshot_id
    head = metadata.refs.get(branch)
    if head is not None and head.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise InvalidArgumentError(f"{branch!r} is a tag; only branches can be moved.")
    _refuse_publish_target(iceberg, branch)
    line = [snapshot.snapshot_id for snapshot in ancestors(metadata, snapshot_by_id(metadata, target_id))]
    if head is not None and head.snapshot_id not in line:
        raise InvalidArgumentError(
            f"branch {branch!r} cannot be moved forward to {to!r}: its snapshot {head.snapshot_id} is not an "
            f"ancestor of {target_id}. set_current_snapshot() moves a branch to any snapshot."
        )
    _move(iceberg, branch, target_id)


def move_to_child(
    iceberg: IcebergTable, branch: str, snapshot: Snapshot, requirements: Sequence[TableRequirement] = ()
) -> None:
    """Move a branch to a snapshot that was made on its head. Raises CommitConflictError if it now has another head, or
    if the table does not meet `requirements`.

    Raises InvalidArgumentError if other branches are published to the branch (MT-30).
    """
    sources = published_to(iceberg.metadata, branch)
    if sources:
        raise InvalidArgumentError(
            f"branch {branch!r} is the publish target of branch {sources[0]!r}, so it accepts only appends."
        )
    head = iceberg.metadata.refs.get(branch)
    moved = _ref(snapshot.snapshot_id, SnapshotRefType.BRANCH, None)
    if head is not None:
        moved = head.model_copy(update={"snapshot_id": snapshot.snapshot_id})
    unmoved = assert_ref(branch, snapshot.parent_snapshot_id)
    commit_updates(iceberg, (unmoved, *requirements), (set_ref(branch, moved),))


def ref_view(iceberg: IcebergTable, name: str) -> SnapshotView:
    """The current snapshot of a branch or tag; the handle moves to the newest metadata. Raises SnapshotNotFoundError,
    with the nearest name."""
    refuse_read_only(iceberg)
    move_to_newest(iceberg)
    return view_at(iceberg.metadata, iceberg.io, _ref_named(iceberg.metadata, name).snapshot_id)


def set_properties(iceberg: IcebergTable, properties: Mapping[str, str]) -> None:
    """Set table properties in one commit. `format-version` upgrades the table instead, as in Iceberg's other engines.

    Raises InvalidArgumentError for a lower version than the table has, UnsupportedFeatureError if the library or the
    catalog cannot write the version.
    """
    refuse_read_only(iceberg)
    checked_properties(properties)
    refuse_coverage_set_by_hand(properties)
    move_to_newest(iceberg)
    schema = iceberg.metadata.schema()
    check_filter_columns(properties, schema)
    check_order_column(properties, schema)
    check_metrics(properties, iceberg.metadata.properties, schema)
    check_retention(properties, iceberg.metadata.properties, schema)
    refuse_check_set_by_hand(properties, iceberg.metadata.properties, schema)
    version = requested_format_version(properties, iceberg.metadata.format_version)
    updates: tuple[TableUpdate, ...] = upgrade_to(iceberg.metadata, version)
    others = {name: value for name, value in properties.items() if name != FORMAT_VERSION}
    if others:
        updates += (SetPropertiesUpdate(updates=others),)
    if updates:
        with refusals_of_version(version, iceberg.catalog.name):
            commit_updates(iceberg, _what_columns_are(iceberg, properties), updates)


def _what_columns_are(iceberg: IcebergTable, properties: Mapping[str, str]) -> tuple[TableRequirement, ...]:
    """CK-6, FM-33, RP-7: the requirements of a commit that sets properties which name columns. A constraint or the
    order column requires the schema to be unchanged; metrics require the range partitions to be unchanged, whose bounds
    they provide."""
    metadata = iceberg.metadata
    schema = AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id})
    is_checked = ORDER_COLUMN in properties or any(map(is_check_property, properties))
    is_measured = any(name.startswith(METRICS) for name in properties)
    coverage = coverage_is(metadata.properties.get(RANGE_PARTITIONS), iceberg.catalog) if is_measured else ()
    return (*((schema,) if is_checked else ()), *coverage)


def remove_properties(iceberg: IcebergTable, names: Sequence[str]) -> None:
    """Remove table properties in one commit. Raises UnknownOptionError for a property that the table does not have."""
    refuse_read_only(iceberg)
    move_to_newest(iceberg)
    present = iceberg.metadata.properties
    for name in names:
        if name not in present:
            raise UnknownOptionError(name, present, where="the table's properties")
    if names:
        commit_updates(iceberg, (), (RemovePropertiesUpdate(removals=list(names)),))


def commit_updates(
    iceberg: IcebergTable,
    requirements: tuple[TableRequirement, ...],
    updates: tuple[TableUpdate, ...],
    *,
    is_tried_again: bool = True,
) -> None:
    """Commit metadata updates of the table and move the handle to the result.

    A commit that lost a race is retried while its requirements still hold. If the requirements do not cover everything
    that the change depends on, set `is_tried_again` to False. Raises CommitConflictError if the requirements no longer
    hold, or after too many races.
    """
    refuse_read_only(iceberg)
    with own_handle(iceberg) as own:
        response = _committed(own, requirements, updates, is_tried_again=is_tried_again)
        own.metadata = response.metadata
        own.metadata_location = response.metadata_location


def _committed(
    iceberg: IcebergTable,
    requirements: tuple[TableRequirement, ...],
    updates: tuple[TableUpdate, ...],
    *,
    is_tried_again: bool,
) -> CommitTableResponse:
    base = iceberg.metadata
    free = ids_of_schemas_are_free(base, updates, iceberg.catalog)
    guarded = (AssertTableUUID(uuid=base.table_uuid), *requirements, *free)

    def attempt() -> CommitTableResponse:
        try:
            return iceberg.catalog.commit_table(iceberg, guarded, updates)
        except CommitFailedException:
            _check_requirements(iceberg, guarded)
            raise

    try:
        return retry_lost_races(attempt, iceberg) if is_tried_again else attempt()
    except CommitFailedException as error:
        raise CommitConflictError(
            f"the change of {'.'.join(iceberg.name())} lost the race against other writers: {error}. Nothing was "
            "changed. Try again, or raise commit.retry.num-retries."
        ) from error


def _check_requirements(iceberg: IcebergTable, requirements: tuple[TableRequirement, ...]) -> None:
    """Raise CommitConflictError if the newest metadata does not meet the requirements, so that no further attempt can
    succeed."""
    metadata = newest_of(iceberg).metadata
    try:
        for requirement in requirements:
            requirement.validate(metadata)
    except CommitFailedException as error:
        raise CommitConflictError(
            f"another commit changed {'.'.join(iceberg.name())} concurrently: {error}. Nothing was changed. Refresh "
            "the handle and try again."
        ) from error


def check_free_name(iceberg: IcebergTable, name: str, kind: SnapshotRefType) -> None:
    """Raise InvalidArgumentError for an invalid name of a branch or tag, AlreadyExistsError for a name in use according
    to the handle or the catalog."""
    check_new_ref_name(name, kind)
    refs = iceberg.metadata.refs
    if name in refs:
        refuse_read_only(iceberg)
        refs = newest_of(iceberg).metadata.refs
    if name in refs:
        found = refs[name].snapshot_ref_type
        raise AlreadyExistsError(f"a {found} {name!r} exists already; drop_{found}({name!r}) removes it.")


def _create(iceberg: IcebergTable, name: str, ref: SnapshotRef) -> None:
    check_free_name(iceberg, name, ref.snapshot_ref_type)
    requirement = assert_ref(name, None)
    commit_updates(iceberg, (requirement,), (set_ref(name, ref),))


def _refuse_publish_target(iceberg: IcebergTable, branch: str) -> None:
    """MT-30: raise InvalidArgumentError if another branch is currently published to this one: only publishing moves
    it."""
    refuse_read_only(iceberg)
    sources = published_to(newest_of(iceberg).metadata, branch)
    if sources:
        raise InvalidArgumentError(
            f"branch {branch!r} is the publish target of branch {sources[0]!r}. Move it with publish({sources[0]!r}, "
            f"{branch!r}), which also converts deletes."
        )


def _move(iceberg: IcebergTable, branch: str, snapshot_id: int) -> None:
    """Move a branch to a snapshot. Nothing is committed if the branch is already there."""
    head = iceberg.metadata.refs.get(branch)
    if head is not None and head.snapshot_id == snapshot_id:
        return
    moved = _ref(snapshot_id, SnapshotRefType.BRANCH, None)
    if head is None:
        check_new_ref_name(branch, SnapshotRefType.BRANCH)
    else:
        moved = head.model_copy(update={"snapshot_id": snapshot_id})
    requirement = assert_ref(branch, None if head is None else head.snapshot_id)
    restored, unchanged = ((), ()) if head is None else _coverage_of(iceberg, snapshot_id, head.snapshot_id)
    commit_updates(iceberg, (requirement, *unchanged), (set_ref(branch, moved), *restored))


def _ref_named(metadata: TableMetadata, name: str) -> SnapshotRef:
    ref = metadata.refs.get(name)
    if ref is None:
        raise SnapshotNotFoundError(f"the table has no branch or tag {name!r}.{nearest_hint(name, metadata.refs)}")
    return ref


def _ref(snapshot_id: int, kind: SnapshotRefType, max_ref_age_ms: int | None) -> SnapshotRef:
    return SnapshotRef.model_validate({"snapshot-id": snapshot_id, "type": kind, "max-ref-age-ms": max_ref_age_ms})


def set_ref(name: str, ref: SnapshotRef) -> SetSnapshotRefUpdate:
    """The update that sets a branch or tag to this ref."""
    return SetSnapshotRefUpdate.model_validate({"ref-name": name, **ref.model_dump(by_alias=True)})


def _snapshot_id(view: SnapshotView) -> int:
    if view.snapshot is None:
        raise SnapshotNotFoundError("the table has no snapshot yet; write some rows first.")
    return view.snapshot.snapshot_id
