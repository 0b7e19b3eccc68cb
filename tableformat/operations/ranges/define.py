"""Defines range partitions for a table without any: from one snapshot on, rows outside are rejected (RP-20)."""

from __future__ import annotations

from dataclasses import replace

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.coverage_change import CoverageChange
from tableformat.commit.planned_change import PlannedChange
from tableformat.commit.publish_target import check_publish_target
from tableformat.commit.read_only import refuse_read_only
from tableformat.commit.transaction import commit_change
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.ranges.result import RangePartitionsResult
from tableformat.parquet.metrics_modes import refuse_lost_bounds
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions.definition import define
from tableformat.range_partitions.listing import partition_contents
from tableformat.range_partitions.model import RangePartitions
from tableformat.range_partitions.property_text import to_property
from tableformat.range_partitions.retention import refuse_two_retentions


def define_partitions(
    iceberg: IcebergTable, branch: str, given: RangePartitions, *, dry_run: bool = False
) -> RangePartitionsResult:
    """RP-20: define the range partitions in one commit and move the handle to it. Raises InvalidArgumentError if the
    table already has some."""
    refuse_read_only(iceberg)
    move_to_newest(iceberg)
    planned = _PlannedDefinition(iceberg, given)
    change = planned.change_on(head_view(iceberg.metadata, iceberg.io, branch), 1)
    check_publish_target(change, iceberg.metadata, branch)
    if dry_run:
        return replace(planned.result, dry_run=True)
    outcome = commit_change(iceberg, planned, ref=branch)
    outcome.move(iceberg)
    return replace(planned.result, snapshot_id=outcome.snapshot_id, attempts=outcome.attempts)


class _PlannedDefinition(PlannedChange):
    """The property, with a snapshot: rows that were accepted before are rejected from then on (RP-8)."""

    def __init__(self, iceberg: IcebergTable, given: RangePartitions) -> None:
        self._iceberg = iceberg
        self._given = given
        self.result = RangePartitionsResult()

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del attempt
        if RANGE_PARTITIONS in head.metadata.properties:
            raise InvalidArgumentError(
                f"table {'.'.join(self._iceberg.name())} already has range partitions. Nothing was changed. Change "
                "them with range_partitions.alter(add=, drop=, split=, merge=)."
            )
        schema = head.metadata.schema()
        defined = define(self._given, schema)
        refuse_lost_bounds(head.metadata.properties, schema, defined.key.field_ids)
        refuse_two_retentions({**head.metadata.properties, RANGE_PARTITIONS: to_property(defined)}, schema)
        contents = partition_contents(head, defined)
        self.result = RangePartitionsResult(
            added=tuple(map(defined.text, defined.bounds)),
            straddling_data_files_count=contents.straddling_file_count,
            uncovered_data_files_count=0 if defined.takes_every_row else contents.elsewhere.file_count,
        )
        return TableChange(
            operation=Operation.APPEND,
            kind=ChangeKind.SCAN_BASED,
            planned_snapshot_id=head.snapshot.snapshot_id if head.snapshot else None,
            planned_sequence_number=head.sequence_number,
            coverage=CoverageChange(None, to_property(defined)),
        )
