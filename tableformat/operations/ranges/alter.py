"""Commits of changes to range partitions: a change that only widens them is a property, one that narrows them a
snapshot (RP-8)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import TableRequirement, TableUpdate

from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.commit_status import CommitStatus, removing_on_failure
from tableformat.commit.coverage_change import CoverageChange, coverage_is, property_updates
from tableformat.commit.leftovers import remove_leftovers
from tableformat.commit.metadata_commit import commit_metadata
from tableformat.commit.planned_change import PlannedChange, UpdatesAndRequirements
from tableformat.commit.publish_target import check_publish_target
from tableformat.commit.read_only import refuse_read_only
from tableformat.commit.rest_catalog import is_rest
from tableformat.commit.transaction import commit_change
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.content_file import DeleteFile
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.evolution.global_spec import global_spec_id
from tableformat.operations.history.references import new_tag
from tableformat.operations.ranges.dropped import DroppedFiles, dropped_files
from tableformat.operations.ranges.result import RangePartitionsResult
from tableformat.properties import BLIND_DELETES, BLIND_DELETES_DEFAULT, RANGE_PARTITIONS, blind_deletes
from tableformat.range_partitions.alteration import narrows
from tableformat.range_partitions.cuts import Range, spans_of
from tableformat.range_partitions.defined import DefinedPartitions, unite
from tableformat.range_partitions.property_text import range_partitions_of, range_to_json, to_property
from tableformat.range_partitions.summary import RETIRED_TAG
from tableformat.storage.storage import delete_if_present
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.range_deletes import write_range_delete_file


@dataclass(frozen=True, slots=True)
class Altered:
    """The range partitions after a change."""

    defined: DefinedPartitions
    added: tuple[Range, ...] = ()
    dropped: tuple[Range, ...] = ()
    """Whole partitions whose rows are deleted."""


Alteration = Callable[[DefinedPartitions], Altered]
"""Called at every attempt with the current range partitions. Raises InvalidArgumentError for an impossible change."""


class PlannedAlteration(PlannedChange):
    """The change for the head of each attempt. Files that were added in the meantime are dropped like the others."""

    def __init__(
        self, iceberg: IcebergTable, alteration: Alteration, *, metadata_only: bool = False, tag: str | None = None
    ) -> None:
        """`tag` is the name of a tag that keeps the snapshot before the change."""
        self._iceberg = iceberg
        self._alteration = alteration
        self._metadata_only = metadata_only
        self.tag = tag
        self._deletes: dict[tuple[Range, ...], DeleteFile] = {}
        self.altered: Altered | None = None
        self.files = DroppedFiles()

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del attempt
        change, self.altered, self.files = self.planned_on(head, writes=True)
        return change

    def planned_on(self, head: SnapshotView, *, writes: bool) -> tuple[TableChange, Altered, DroppedFiles]:
        before = defined_partitions(self._iceberg, head)
        altered = self._alteration(before)
        files = dropped_files(head, before, altered.dropped)
        if files.straddling and self._metadata_only:
            some = ", ".join(data.file_path for data in files.straddling[:3])
            dropped = ", ".join(map(before.text, altered.dropped[:3]))
            raise InvalidArgumentError(
                f"{len(files.straddling)} data files have rows both inside and outside {dropped} ({some}), so a "
                "range delete is required. Nothing was changed. Either compact first, which splits these files at "
                "range boundaries, or pass metadata_only=False to delete the rows now."
            )
        after = to_property(altered.defined)
        text = head.metadata.properties.get(RANGE_PARTITIONS)
        adds = (self._delete_of(altered.dropped),) if files.straddling and writes else ()
        coverage = None
        if after != text:
            needs_snapshot = self.needs_snapshot(before, altered)
            coverage = CoverageChange(text, after, needs_snapshot, _dropped_text(before, altered.dropped))
        change = TableChange(
            operation=Operation.DELETE if files.inside or adds else Operation.APPEND,
            kind=ChangeKind.SCAN_BASED,
            added_delete_files=adds,
            removed_data_files=files.inside,
            removed_delete_files=files.row_deletes,
            planned_snapshot_id=head.snapshot.snapshot_id if head.snapshot else None,
            planned_sequence_number=head.sequence_number,
            coverage=coverage,
        )
        return change, altered, files

    def needs_snapshot(self, before: DefinedPartitions, altered: Altered) -> bool:
        """RP-8: whether the change needs a snapshot. A change that narrows the ranges does, with or without files.
        Catalog servers do not compare the property, so with them every change needs one."""
        return bool(altered.dropped) or narrows(before, altered.defined) or is_rest(self._iceberg.catalog)

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        del snapshot
        if self.tag is None or head.snapshot is None:
            return (), ()
        return new_tag(self.tag, head.snapshot.snapshot_id)

    def discard(self) -> None:
        """Remove the files of a change that was certainly not committed."""
        for delete in self._deletes.values():
            delete_if_present(self._iceberg.io, delete.file_path)

    def remove_unused(self, used: Sequence[DeleteFile]) -> None:
        """Remove the files of earlier attempts."""
        paths = {delete.file_path for delete in used}
        unused = [each.file_path for each in self._deletes.values() if each.file_path not in paths]
        remove_leftovers(self._iceberg.io, unused)

    def _delete_of(self, dropped: tuple[Range, ...]) -> DeleteFile:
        """RP-12: one range delete for all straddling files; written once for the same ranges."""
        if dropped not in self._deletes:
            _check_may_leave_ranges(self._iceberg)
            context = WriteContext.of(self._iceberg.metadata, self._iceberg.io)
            defined = defined_partitions(self._iceberg, head_view(self._iceberg.metadata, self._iceberg.io))
            spans = spans_of(defined.key, dropped)
            self._deletes[dropped] = write_range_delete_file(context, spans, spec_id=global_spec_id(self._iceberg))
        return self._deletes[dropped]


def _check_may_leave_ranges(iceberg: IcebergTable) -> None:
    """SP-22: raise InvalidArgumentError if the owner of the table does not allow range deletes."""
    allowed = blind_deletes(iceberg.metadata.properties)
    if allowed != BLIND_DELETES_DEFAULT:
        raise InvalidArgumentError(
            f"data files of {'.'.join(iceberg.name())} have rows on both sides of a range boundary. Removing these "
            f"rows requires a range delete, which the table property {BLIND_DELETES}={allowed!r} forbids. Nothing "
            "was changed. Delete the rows first with delete(), which finds them; or compact, which splits files at "
            "range boundaries."
        )


def _dropped_text(before: DefinedPartitions, dropped: Sequence[Range]) -> str | None:
    """RP-25: the dropped ranges as JSON. Adjacent ranges are merged, so that a long window is a short text."""
    if not dropped:
        return None
    ranges = [range_to_json(before.key, each) for each in unite(dropped)[0]]
    return json.dumps({"field-ids": list(before.key.field_ids), "ranges": ranges}, separators=(",", ":"))


def defined_partitions(iceberg: IcebergTable, view: SnapshotView) -> DefinedPartitions:
    """The range partitions of the table. Raises InvalidArgumentError for a table without any."""
    defined = range_partitions_of(view.metadata.properties, view.metadata.schema())
    if defined is None:
        raise InvalidArgumentError(
            f"table {'.'.join(iceberg.name())} has no range partitions, so it accepts rows with any key. Define "
            "range partitions with create_table(range_partitions=...), or later with range_partitions.define(...)."
        )
    return defined


def alter(
    iceberg: IcebergTable,
    branch: str,
    alteration: Alteration,
    *,
    metadata_only: bool = False,
    dry_run: bool = False,
) -> RangePartitionsResult:
    """RP-8: apply the alteration in one commit and move the handle to it."""
    refuse_read_only(iceberg)
    move_to_newest(iceberg)
    planned = PlannedAlteration(iceberg, alteration, metadata_only=metadata_only)
    head = head_view(iceberg.metadata, iceberg.io, branch)
    change, altered, files = planned.planned_on(head, writes=False)
    check_publish_target(change, iceberg.metadata, branch)
    if dry_run:
        return replace(_result(altered, files), dry_run=True)
    if change.coverage is None:
        return _result(altered, files)
    if not change.coverage.needs_snapshot:
        return _widened(iceberg, alteration, altered)
    return committed(iceberg, branch, planned)


def _widened(iceberg: IcebergTable, alteration: Alteration, altered: Altered) -> RangePartitionsResult:
    """Change only the property, based on the current ranges at each attempt: concurrent additions are combined."""
    made = [altered]

    def prepare(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
        text = table.metadata.properties.get(RANGE_PARTITIONS)
        made.append(alteration(defined_partitions(table, head_view(table.metadata, table.io))))
        after = to_property(made[-1].defined)
        return ((), ()) if after == text else (property_updates(after), coverage_is(text, table.catalog))

    commit_metadata(iceberg, prepare)
    return _result(made[-1], DroppedFiles())


def committed(iceberg: IcebergTable, branch: str, planned: PlannedAlteration) -> RangePartitionsResult:
    """Commit a planned alteration, with its tag."""
    status = CommitStatus()
    with removing_on_failure(status, planned.discard):
        retired = None if planned.tag is None else {RETIRED_TAG: planned.tag}
        outcome = commit_change(iceberg, planned, ref=branch, snapshot_properties=retired, status=status)
    outcome.move(iceberg)
    assert planned.altered is not None
    added = outcome.change.added_delete_files if outcome.change is not None else ()
    if outcome.change is not None:
        planned.remove_unused(added)
    result = _result(planned.altered, planned.files)
    return replace(
        result,
        snapshot_id=outcome.snapshot_id,
        attempts=outcome.attempts,
        added_delete_files_count=len(added),
        tag=planned.tag,
    )


def _result(altered: Altered, files: DroppedFiles) -> RangePartitionsResult:
    return RangePartitionsResult(
        added=tuple(altered.defined.text(each) for each in altered.added),
        dropped=tuple(altered.defined.text(each) for each in altered.dropped),
        removed_data_files_count=len(files.inside),
        removed_row_count=sum(data.record_count for data in files.inside),
        removed_bytes=sum(data.file_size_bytes for data in files.inside),
        straddling_data_files_count=len(files.straddling),
    )
