"""Snapshots, refs and batch records past retention. Reads metadata only and changes nothing.

Sources: Iceberg table specification, "Snapshot Retention Policy"; table properties `history.expire.*`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType

from tableformat import properties as names
from tableformat.commit.idempotence import remembered_batches
from tableformat.commit.publish_target import history_to_publish, publish_bases
from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.staged_conversions import conversions_out_of_use, source_of
from tableformat.operations.history.consumers import snapshots_for_consumers
from tableformat.range_partitions.retired import unneeded_retired_properties


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRequest:
    """The request of the caller. None: the table's properties decide."""

    now_ms: int
    """The time from which ages are computed, in milliseconds since 1970-01-01 UTC."""
    older_than_ms: int | None = None
    """Snapshots from before this time may expire."""
    retain_last: int | None = None
    """The number of newest snapshots of each branch that stay regardless of their age."""
    snapshot_ids: frozenset[int] = frozenset()
    """Snapshots to expire regardless of their age."""

    @property
    def is_by_id_only(self) -> bool:
        return bool(self.snapshot_ids) and self.older_than_ms is None and self.retain_last is None


@dataclass(frozen=True, slots=True)
class Expiry:
    """The parts of a table's metadata that can be removed."""

    snapshot_ids: tuple[int, ...] = ()
    """In the order of the table's list of snapshots."""
    refs: tuple[str, ...] = ()
    """Branches and tags that exceeded their maximum age."""
    batch_properties: tuple[str, ...] = ()
    """Properties with the last batches of writers that have been inactive for long (MT-4)."""
    batch_refs: tuple[str, ...] = ()
    """The refs to which those batches were committed. Some may no longer exist."""
    retired_properties: tuple[str, ...] = ()
    """Properties of retired ranges whose tag expires, or no longer exists (RP-31)."""

    @property
    def is_empty(self) -> bool:
        return not (self.snapshot_ids or self.refs or self.batch_properties or self.retired_properties)


def plan_expiry(metadata: TableMetadata, request: RetentionRequest) -> Expiry:
    """MT-1: a ref stays until its maximum age, `main` forever. A branch keeps its newest snapshots, a tag its own.

    A snapshot without a ref stays until it reaches the maximum age; a staged conversion until it is out of use (SV-8).
    The base of publishing stays until the next publish. Unread snapshots stay until their consumer has read them
    (CF-11). If only ids are given, nothing else expires.

    Raises SnapshotNotFoundError for an unknown snapshot id, InvalidArgumentError for a snapshot that a ref needs.
    """
    unknown = request.snapshot_ids - {snapshot.snapshot_id for snapshot in metadata.snapshots}
    if unknown:
        raise SnapshotNotFoundError(f"no snapshot {min(unknown)}; it may have expired already.")
    refs = dict(metadata.refs) if request.is_by_id_only else _retained_refs(metadata, request)
    bases, told = publish_bases(metadata), history_to_publish(metadata)
    unread = snapshots_for_consumers(metadata, request.now_ms)
    _check_not_named(request.snapshot_ids, refs, bases, told)
    _check_not_unread(request.snapshot_ids, unread)
    if request.is_by_id_only:
        expired: Collection[int] = request.snapshot_ids
    else:
        retained = _retained_snapshots(metadata, refs, request) | set(bases.values()) | told | unread
        expired = {snapshot.snapshot_id for snapshot in metadata.snapshots} - retained | request.snapshot_ids
    batches = {} if request.is_by_id_only else _forgotten_batches(metadata, request.now_ms)
    retired = () if request.is_by_id_only else unneeded_retired_properties(metadata.properties, refs)
    return Expiry(
        retired_properties=tuple(retired),
        snapshot_ids=tuple(snapshot.snapshot_id for snapshot in metadata.snapshots if snapshot.snapshot_id in expired),
        refs=tuple(name for name in metadata.refs if name not in refs),
        batch_properties=tuple(batches),
        batch_refs=tuple(dict.fromkeys(batches.values())),
    )


def _retained_refs(metadata: TableMetadata, request: RetentionRequest) -> dict[str, SnapshotRef]:
    text = metadata.properties.get(names.MAX_REF_AGE_MS)
    default_age_ms = None if text is None else names.positive_int(metadata.properties, names.MAX_REF_AGE_MS, 1)

    def stays(name: str, ref: SnapshotRef) -> bool:
        max_age_ms = ref.max_ref_age_ms if ref.max_ref_age_ms is not None else default_age_ms
        snapshot = snapshot_by_id(metadata, ref.snapshot_id)
        if name == MAIN_BRANCH or max_age_ms is None or snapshot is None:
            return True
        return request.now_ms - snapshot.timestamp_ms <= max_age_ms

    return {name: ref for name, ref in metadata.refs.items() if stays(name, ref)}


def _check_not_named(
    snapshot_ids: Collection[int], refs: dict[str, SnapshotRef], bases: dict[str, int], told: set[int]
) -> None:
    for name, ref in refs.items():
        if ref.snapshot_id in snapshot_ids:
            raise InvalidArgumentError(
                f"snapshot {ref.snapshot_id} cannot expire, because the {ref.snapshot_ref_type} {name!r} refers to it. "
                + (
                    "The branch always has a snapshot."
                    if name == MAIN_BRANCH
                    else f"Drop the {ref.snapshot_ref_type} first."
                )
            )
    for branch, snapshot_id in bases.items():
        if snapshot_id in snapshot_ids:
            raise InvalidArgumentError(
                f"snapshot {snapshot_id} cannot expire: publishing of branch {branch!r} starts from it. Publish first."
            )
    if named := told.intersection(snapshot_ids):
        raise InvalidArgumentError(
            f"snapshot {min(named)} cannot expire: it may record which ranges were dropped on a branch that is not "
            "published yet. Publish first."
        )


def _check_not_unread(snapshot_ids: Collection[int], unread: set[int]) -> None:
    if named := unread.intersection(snapshot_ids):
        raise InvalidArgumentError(
            f"snapshot {min(named)} cannot expire: a consumer of the change feed has not read past it. "
            "`consumers.list()` lists the consumers. Advance or drop them first."
        )


def _retained_snapshots(metadata: TableMetadata, refs: dict[str, SnapshotRef], request: RetentionRequest) -> set[int]:
    max_age_ms = names.max_snapshot_age_ms(metadata.properties)
    oldest_ms = request.older_than_ms if request.older_than_ms is not None else request.now_ms - max_age_ms
    retained: set[int] = set()
    referenced: set[int] = set()
    for ref in refs.values():
        retained.add(ref.snapshot_id)
        if ref.snapshot_ref_type == SnapshotRefType.BRANCH:
            retained.update(_kept_of_branch(metadata, ref, request, oldest_ms))
            head = snapshot_by_id(metadata, ref.snapshot_id)
            referenced.update(snapshot.snapshot_id for snapshot in ancestors(metadata, head))
    unused = conversions_out_of_use(metadata, request.now_ms, names.staged_max_age_ms(metadata.properties))
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id in referenced:
            continue
        if source_of(snapshot) is None:
            is_retained = snapshot.timestamp_ms >= oldest_ms
        else:
            # SV-8: its time is the time of its source, which says nothing about its readers.
            is_retained = snapshot.snapshot_id not in unused
        if is_retained:
            retained.add(snapshot.snapshot_id)
    return retained


def _kept_of_branch(
    metadata: TableMetadata, ref: SnapshotRef, request: RetentionRequest, oldest_ms: int
) -> Iterator[int]:
    """The newest snapshots of the branch, without a gap. The branch's own settings take precedence over the
    caller's."""
    if ref.max_snapshot_age_ms is not None:
        oldest_ms = request.now_ms - ref.max_snapshot_age_ms
    least = ref.min_snapshots_to_keep or request.retain_last
    if least is None:
        least = names.positive_int(
            metadata.properties, names.MIN_SNAPSHOTS_TO_KEEP, names.MIN_SNAPSHOTS_TO_KEEP_DEFAULT
        )
    most = len(metadata.snapshots) if request.older_than_ms is not None else max_snapshots(metadata, least)
    for count, snapshot in enumerate(ancestors(metadata, snapshot_by_id(metadata, ref.snapshot_id))):
        if count >= least and (snapshot.timestamp_ms < oldest_ms or count >= most):
            return
        yield snapshot.snapshot_id


def max_snapshots(metadata: TableMetadata, least: int) -> int:
    """The most snapshots of a branch that the table's properties keep."""
    most = names.max_snapshots(metadata.properties)
    return len(metadata.snapshots) if most is None else max(most, least)


def _forgotten_batches(metadata: TableMetadata, now_ms: int) -> dict[str, str]:
    """MT-4: property to ref, for batches past retention. If only snapshot ids are given, no batch is removed."""
    retention_ms = names.non_negative_int(
        metadata.properties, names.TRANSACTION_RETENTION_MS, names.TRANSACTION_RETENTION_MS_DEFAULT
    )
    forgotten: dict[str, str] = {}
    for name, ref in _batch_properties(metadata):
        batches = remembered_batches({name: metadata.properties[name]}, ref)
        if all(batch.time_ms < now_ms - retention_ms for batch in batches.values()):
            forgotten[name] = ref
    return forgotten


def _batch_properties(metadata: TableMetadata) -> Iterator[tuple[str, str]]:
    """Every property that holds a batch, with its ref. The dots of a ref are encoded, so the first dot ends it."""
    for name in metadata.properties:
        ref, dot, application_id = name.removeprefix(names.TRANSACTION_PREFIX).partition(".")
        if name.startswith(names.TRANSACTION_PREFIX) and dot and application_id:
            yield name, unquote(ref)
