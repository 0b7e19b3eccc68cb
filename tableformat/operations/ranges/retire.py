"""Retiring and restoring: partitions are removed, a tag keeps their files, and they can be restored unchanged (RP-13).

snapshot 4   [a, b) and its files      tag retired-a-b
snapshot 5   retired: neither
snapshot 9   restored: the same files, with their former numbers, and their deletes of snapshot 4
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import RemovePropertiesUpdate, RemoveSnapshotRefUpdate, SetPropertiesUpdate

from tableformat.commit.change import ChangeKind, FileKey, TableChange, file_key, is_keyed
from tableformat.commit.commit_status import CommitStatus, removing_on_failure
from tableformat.commit.coverage_change import CoverageChange
from tableformat.commit.metadata_commit import assert_ref
from tableformat.commit.planned_change import PlannedChange, UpdatesAndRequirements
from tableformat.commit.publish_target import published_to
from tableformat.commit.read_only import refuse_read_only
from tableformat.commit.transaction import commit_change
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import committed_sequence_number, keyed_delete_is_new_enough
from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError, nearest_hint
from tableformat.merge_on_read.applicable_deletes import ApplicableDeletes
from tableformat.merge_on_read.deleted_positions import MergeCaches, MergeContext, deleted_positions
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_choice import ancestors, head_view, view_of_tag
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.history.held_checks import refuse_rows_that_do_not_fit
from tableformat.operations.options import one_of
from tableformat.operations.ranges.alter import Alteration, PlannedAlteration, defined_partitions
from tableformat.operations.ranges.dropped import dropped_files, live_data_files, live_delete_files
from tableformat.operations.ranges.later_deletes import LaterDeletes, later_deletes, positions_of
from tableformat.operations.ranges.result import RangePartitionsResult
from tableformat.properties import PUBLISH_TARGET_PREFIX, RANGE_PARTITIONS, RETIRED_PREFIX
from tableformat.range_partitions.alteration import added
from tableformat.range_partitions.cuts import Range, range_text
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.property_text import range_from_json, to_property
from tableformat.range_partitions.retired import is_retirement, retired_in_line, retired_text
from tableformat.range_partitions.summary import RESTORED_TAG
from tableformat.scan.planner import plan_scan
from tableformat.storage.storage import delete_if_present
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.row_deletes import RowsToDelete, write_row_deletes

LATER_DELETES: Final = ("apply", "ignore")
_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def new_retired_tag(metadata: TableMetadata, ranges: str) -> str:
    """A free name for the tag of retired ranges."""
    stem = "retired-" + _NO_LETTER.sub("-", ranges).strip("-")
    names = (stem, *(f"{stem}-{number}" for number in range(2, len(metadata.refs) + 3)))
    return next(name for name in names if name not in metadata.refs)


class PlannedRetirement(PlannedAlteration):
    """RP-13: a drop of whole files that leaves a tag at the snapshot before it, and records the ranges of the tag."""

    def __init__(self, iceberg: IcebergTable, branch: str, alteration: Alteration, *, tag: str) -> None:
        super().__init__(iceberg, alteration, metadata_only=True, tag=tag)
        self._branch = branch

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        assert self.tag is not None, "a retirement has a tag"
        assert self.altered is not None, "used only after the change"
        if head.snapshot is None:
            raise InvalidArgumentError(
                "the branch has no snapshot, so there are no rows to retain. Use drop() instead."
            )
        updates, requirements = super().beside(head, snapshot)
        text = retired_text(self.altered.defined.key, self._branch, self.altered.dropped, snapshot.timestamp_ms)
        record = SetPropertiesUpdate(updates={RETIRED_PREFIX + self.tag: text})
        return (*updates, record), requirements


def restore(
    iceberg: IcebergTable, branch: str, tag: str, *, deletes: str | None = None, dry_run: bool = False
) -> RangePartitionsResult:
    """RP-13: restore the ranges that were retired under the tag, in one commit that also removes the tag. `deletes`
    decides whether deletes committed in the meantime are applied."""
    refuse_read_only(iceberg)
    if deletes is not None:
        one_of(deletes, LATER_DELETES, option="deletes")
    move_to_newest(iceberg)
    planned = _PlannedRestoration(iceberg, branch, tag, deletes)
    if dry_run:
        return replace(planned.result(planned.change_of(_head(iceberg, branch))), dry_run=True)
    status = CommitStatus()
    with removing_on_failure(status, planned.discard):
        outcome = commit_change(iceberg, planned, ref=branch, snapshot_properties={RESTORED_TAG: tag}, status=status)
    outcome.move(iceberg)
    assert planned.change is not None
    return replace(planned.result(planned.change), snapshot_id=outcome.snapshot_id, attempts=outcome.attempts)


class _PlannedRestoration(PlannedChange):
    """The files of the tag's snapshot, for the head of each attempt."""

    def __init__(self, iceberg: IcebergTable, branch: str, tag: str, deletes: str | None) -> None:
        self._iceberg = iceberg
        self._branch = branch
        self._tag = tag
        self._deletes = deletes
        self._later = LaterDeletes()
        self._files: tuple[DataFile, ...] = ()
        """The restored files, with the sequence numbers of the tag's snapshot."""
        self._escaping: frozenset[DataFile] = frozenset()
        """The restored files that get a new sequence number, so that live later deletes do not reach them. Their former
        deletes do not reach them either and are written again by position."""
        self._restored: tuple[str, ...] = ()
        self._written: dict[tuple[tuple[DataFile, ...], tuple[str | int, ...]], tuple[DeleteFile, ...]] = {}
        """Written deletes by the data files that they delete from, and the later deletes that were applied."""
        self.change: TableChange | None = None

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del attempt
        change = self.change_of(head)
        kept = view_of_tag(head.metadata, head.io, self._tag)
        merge = MergeContext(kept.metadata, kept.io, MergeCaches())
        applies = self._deletes == "apply" and bool(self._files)
        later = positions_of(self._later, kept, self._files, merge) if applies else {}
        stored = _deletes_to_bring_back(kept, head, self._files, by_position=later.keys() | self._escaping)
        deletes = (*stored.as_they_were, *self._by_position(kept, stored.to_write, later, merge))
        operation = Operation.OVERWRITE if deletes else Operation.APPEND
        self.change = replace(change, operation=operation, added_delete_files=deletes)
        return self.change

    def change_of(self, head: SnapshotView) -> TableChange:
        """The change without deletes; no file is written."""
        self._refuse_publish_target(head.metadata)
        defined = defined_partitions(self._iceberg, head)
        ranges = _retired_ranges(head.metadata.properties, self._tag, defined)
        _refuse_existing(self._tag, defined, ranges)
        after = added(defined, ranges)
        kept = view_of_tag(head.metadata, head.io, self._tag)
        live = {data.file_path for data in live_data_files(head)}
        data_files = (
            [data for data in dropped_files(kept, defined, ranges).inside if data.file_path not in live]
            if self._lost_the_rows(head, kept)
            else []
        )
        table = ".".join(self._iceberg.name())
        refuse_rows_that_do_not_fit(kept, data_files, head.metadata, since=self._retirement(kept), table=table)
        self._later = later_deletes(head, self._retirement(kept), data_files) if data_files else LaterDeletes()
        self._check_later(self._later)
        self._files = tuple(data_files)
        self._escaping = _reached_since(kept, head, data_files) if self._deletes == "ignore" else frozenset()
        self._restored = tuple(range_text(defined.key, each) for each in ranges)
        return TableChange(
            operation=Operation.APPEND,
            kind=ChangeKind.SCAN_BASED,
            added_data_files=tuple(
                replace(
                    data,
                    file_sequence_number=None,
                    sequence_number=None if data in self._escaping else data.sequence_number,
                )
                for data in data_files
            ),
            planned_snapshot_id=head.snapshot.snapshot_id if head.snapshot else None,
            planned_sequence_number=head.sequence_number,
            coverage=CoverageChange(head.metadata.properties.get(RANGE_PARTITIONS), to_property(after)),
        )

    def _refuse_publish_target(self, metadata: TableMetadata) -> None:
        """MT-30: raise InvalidArgumentError if other branches are published to this one. On those branches the files
        would be affected by older deletes."""
        sources = published_to(metadata, self._branch)
        if sources:
            raise InvalidArgumentError(
                f"branch {self._branch!r} is the publish target of branch {sources[0]!r}, so it accepts only new "
                f"rows. Nothing was changed. Restore {self._tag!r} on {sources[0]!r} and publish it, or remove the "
                f"table property {PUBLISH_TARGET_PREFIX}{sources[0]}."
            )

    def _retirement(self, kept: SnapshotView) -> Snapshot:
        """The snapshot up to which the rows were in the branch and checked against its constraints (CK-10); the
        snapshot of the tag if it has expired."""
        assert kept.snapshot is not None, "a tag has one"
        told = (
            snapshot
            for snapshot in kept.metadata.snapshots
            if is_retirement(snapshot, self._tag) and snapshot.parent_snapshot_id == kept.snapshot.snapshot_id
        )
        return next(told, kept.snapshot)

    def _check_later(self, later: LaterDeletes) -> None:
        """RP-13: raise InvalidArgumentError if the caller must decide, or if deletes cannot be applied."""
        if self._deletes is None and not later.is_complete:
            raise InvalidArgumentError(
                f"snapshots committed since {self._tag!r} was retired have expired, so later deletes are unknown. "
                "Nothing was changed. Restore it with deletes='ignore'."
            )
        if self._deletes is None and later.snapshots_count:
            raise InvalidArgumentError(
                f"{later.snapshots_count} deletes that may affect {self._tag!r} were committed since it was retired. "
                "Nothing was changed. Restore it with deletes='apply' to apply them to the restored rows, or with "
                "deletes='ignore' to restore all of its rows."
            )
        if self._deletes == "apply" and not later.is_complete:
            raise InvalidArgumentError(
                f"snapshots committed since {self._tag!r} was retired have expired, so their deletes cannot be "
                "applied. Nothing was changed. Restore it with deletes='ignore' and delete the rows again."
            )
        if self._deletes == "apply" and later.unknown:
            raise InvalidArgumentError(
                f"{len(later.unknown)} of {later.snapshots_count} deletes since {self._tag!r} was retired have no "
                f"recorded condition, such as snapshot {later.unknown[0].snapshot_id}, so they cannot be applied. "
                "Nothing was changed. Restore it with deletes='ignore' and delete the rows again."
            )

    def _by_position(
        self,
        kept: SnapshotView,
        data_files: tuple[DataFile, ...],
        later: Mapping[DataFile, PositionSet],
        merge: MergeContext,
    ) -> tuple[DeleteFile, ...]:
        """RP-13: the former deletes of these files, in the form for the format version of the head (CP-19)."""
        if not data_files:
            return ()
        key = (data_files, self._later.identity)
        if key not in self._written:
            self._written[key] = _row_deletes_of(kept, data_files, later, merge)
        return self._written[key]

    def discard(self) -> None:
        """Remove the files of a change that was certainly not committed."""
        for location in {delete.file_path for deletes in self._written.values() for delete in deletes}:
            delete_if_present(self._iceberg.io, location)

    def _lost_the_rows(self, head: SnapshotView, kept: SnapshotView) -> bool:
        """RP-13: whether the retirement is in the history of the branch. Otherwise the branch continued from the tag's
        snapshot in another way, and still has the rows in some files. Raises InvalidArgumentError if this cannot be
        determined."""
        assert kept.snapshot is not None, "a tag has one"
        line = list(ancestors(head.metadata, head.snapshot))
        known = retired_in_line(self._tag, kept.snapshot.snapshot_id, line)
        if known is not None:
            return known
        retired_on = json.loads(head.metadata.properties[RETIRED_PREFIX + self._tag])["branch"]
        if retired_on != self._branch:
            raise InvalidArgumentError(
                f"{self._tag!r} was retired on branch {retired_on!r}, which is not in the history of "
                f"{self._branch!r}, so it is unknown whether {self._branch!r} still has the rows. Nothing was "
                f"changed. Restore it on {retired_on!r}, or read the tag and append the missing rows."
            )
        return True

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        """CP-62: the tag keeps the restored files until the commit."""
        del snapshot
        forgotten = RemovePropertiesUpdate(removals=[RETIRED_PREFIX + self._tag])
        kept = assert_ref(self._tag, head.metadata.refs[self._tag].snapshot_id)
        return (forgotten, RemoveSnapshotRefUpdate.model_validate({"ref-name": self._tag})), (kept,)

    def result(self, change: TableChange) -> RangePartitionsResult:
        count = len(change.added_data_files)
        return RangePartitionsResult(added=self._restored, restored_data_files_count=count, tag=self._tag)


def _retired_ranges(properties: Mapping[str, str], tag: str, defined: DefinedPartitions) -> list[Range]:
    """The ranges that were retired under a tag. Raises SnapshotNotFoundError with the nearest name."""
    text = properties.get(RETIRED_PREFIX + tag)
    if text is None:
        names = [name.removeprefix(RETIRED_PREFIX) for name in properties if name.startswith(RETIRED_PREFIX)]
        raise SnapshotNotFoundError(
            f"the tag {tag!r} has no retired range. Nothing was changed.{nearest_hint(tag, names)} "
            "range_partitions.list() shows the tags of retired ranges."
        )
    value: dict[str, Any] = json.loads(text)
    if value["field-ids"] != list(defined.key.field_ids):
        raise InvalidArgumentError(
            f"the range retired under {tag!r} has other range columns than the table now has. Nothing was changed."
        )
    return [range_from_json(defined.key, each) for each in value["ranges"]]


def _refuse_existing(tag: str, defined: DefinedPartitions, ranges: Sequence[Range]) -> None:
    """RP-13: raise InvalidArgumentError if a part of a range to restore was added again."""
    clash = next(((each, bound) for each in ranges for bound in defined.bounds if bound.meets(each)), None)
    if clash is not None:
        each, bound = clash
        part = defined.text(Range(max(each.lower, bound.lower), min(each.upper, bound.upper)))
        raise InvalidArgumentError(
            f"{defined.text(each)} of the tag {tag!r} cannot be restored: {defined.text(bound)} already exists. "
            f"Nothing was changed. Either drop or retire {part} first, or append the rows from scan(tag={tag!r})."
        )


@dataclass(frozen=True, slots=True)
class _StoredDeletes:
    """How the former deletes of restored files are stored, if they are no longer live."""

    as_they_were: tuple[DeleteFile, ...]
    """Row deletes: the rows that they name are deleted in any snapshot."""
    to_write: tuple[DataFile, ...]
    """Files whose deleted rows are looked up and deleted by position."""


def _reached_since(kept: SnapshotView, head: SnapshotView, data_files: Sequence[DataFile]) -> frozenset[DataFile]:
    """RP-13: the files that a live keyed delete of a later commit would reach."""
    came_since = [
        delete
        for delete in live_delete_files(head)
        if is_keyed(delete) and keyed_delete_is_new_enough(committed_sequence_number(delete), kept.sequence_number)
    ]
    newer = ApplicableDeletes(head.metadata, came_since)
    return frozenset(data for data in data_files if newer.of(data))


def _deletes_to_bring_back(
    kept: SnapshotView, head: SnapshotView, data_files: Sequence[DataFile], by_position: Collection[DataFile]
) -> _StoredDeletes:
    """RP-13: the deletes that reached the files when they were retired and are no longer live. `by_position` are files
    whose deleted rows are written by position in any case.

    A keyed delete would also reach other files of the same age, whose rows were restored in the meantime and were never
    deleted by it.
    """
    known = {file_key(delete) for delete in live_delete_files(head)}
    applicable = ApplicableDeletes(kept.metadata, live_delete_files(kept))
    as_they_were: dict[FileKey, DeleteFile] = {}
    to_write: list[DataFile] = []
    for data in data_files:
        gone = [delete for delete in applicable.of(data) if file_key(delete) not in known]
        if data in by_position or any(is_keyed(delete) or _is_of_an_older_version(delete, head) for delete in gone):
            to_write.append(data)
        else:
            as_they_were |= {file_key(delete): replace(delete, file_sequence_number=None) for delete in gone}
    return _StoredDeletes(tuple(as_they_were.values()), tuple(to_write))


def _is_of_an_older_version(delete: DeleteFile, head: SnapshotView) -> bool:
    """CP-19: an upgraded table accepts no new position delete files."""
    return delete.kind is DeleteKind.POSITION and head.metadata.format_version >= 3


def _row_deletes_of(
    kept: SnapshotView, data_files: Sequence[DataFile], later: Mapping[DataFile, PositionSet], merge: MergeContext
) -> tuple[DeleteFile, ...]:
    """The rows deleted by the deletes of the snapshot and the later ones, as position deletes or, in version 3,
    vectors."""
    tasks = {task.data_file: task for task in plan_scan(kept, context=merge, data_files=data_files).tasks}

    def positions(data: DataFile) -> PositionSet:
        # A file without a task is covered completely (RD-10).
        found = deleted_positions(tasks[data], merge) if data in tasks else PositionSet.every(data.record_count)
        return found.union(later[data]) if data in later else found

    rows = [RowsToDelete(FileScanTask(data_file=data), positions(data)) for data in data_files]
    return write_row_deletes(
        WriteContext.of(kept.metadata, kept.io), [each for each in rows if each.positions], merge
    ).added


def _head(iceberg: IcebergTable, branch: str) -> SnapshotView:
    return head_view(iceberg.metadata, iceberg.io, branch)
