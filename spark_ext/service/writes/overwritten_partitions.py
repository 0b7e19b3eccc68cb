"""INSERT OVERWRITE with dynamic partitions: replace all rows of the partitions that receive new rows.

A partition belongs to the partition spec and, if the table has range partitions, to one of those (RP-29):

    spec                bucket 0             bucket 1
    range partitions    [2024)[2025)[2026)   [2024)[2025)[2026)
    new rows             x                                 y
    replaced            [====)                            [====)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec

from tableformat.deletes.matching.range_match import deleted_mask
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import is_unpartitioned
from tableformat.deletes.spans.bounds import key_bounds
from tableformat.errors import CommitConflictError
from tableformat.keys.key_columns import KeyColumns
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.task import RowTask
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.partition_identity import partition_identity, partition_of
from tableformat.operations.staging.draft import Draft
from tableformat.range_partitions.cuts import Range, spans_of
from tableformat.range_partitions.defined import DefinedPartitions, unite
from tableformat.range_partitions.files import FilePlaces, Straddling, partitions_of_files
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import prepare_task, read_stored
from tableformat.write.data_files.partitions import PartitionValues, SpecRouter

Flags: TypeAlias = npt.NDArray[np.bool_]
Partition: TypeAlias = tuple[int, PartitionValues]
"""The identity of a partition, from `partition_of`: NaN equals NaN, and -0.0 differs from 0.0 (DA-3)."""


def stage_overwritten_partitions(draft: Draft, overwritten: OverwrittenPartitions) -> None:
    """Stage the delete of all rows of the partitions, or of all rows in a table without partitions.

    A file inside one partition, by its spec and its bounds, is deleted as a whole. Other files are searched for rows.
    """
    if not overwritten.ranges:
        return
    context = ReadContext.of(draft.view)
    for task in draft.plan(None, may_match=overwritten.may_reach):
        if not overwritten.may_reach(task.data_file):
            continue
        if overwritten.holds(task.data_file):
            rows = PositionSet.from_runs(np.array([0]), np.array([task.data_file.record_count]))
        else:
            rows = _rows_in(task, overwritten, context)
        alive = rows.minus(deleted_positions(task, context.merge))
        if alive:
            draft.delete_positions(task, alive)


@dataclass(frozen=True, slots=True)
class _Ranges:
    """The overwritten part of one partition of the spec: disjoint ranges, in order."""

    key: KeyColumns
    places: FilePlaces

    @classmethod
    def of(cls, key: KeyColumns, ranges: Sequence[Range]) -> _Ranges:
        return cls(key, FilePlaces.of(unite(ranges)[0]))

    def may_reach(self, data: DataFile) -> bool:
        return bool(self.places.touched(key_bounds(data, self.key)))

    def holds(self, data: DataFile) -> bool:
        return self.places.holder(key_bounds(data, self.key)) is not None

    def rows_in(self, batch: pa.RecordBatch) -> Flags:
        columns = [batch.column(name) for name in self.key.names]
        return deleted_mask(columns, spans_of(self.key, self.places.ranges))


@dataclass(frozen=True, slots=True)
class OverwrittenPartitions:
    """The partitions that receive new rows."""

    spec: PartitionSpec
    ranges: dict[Partition, _Ranges | None]
    """The overwritten ranges of each partition of the spec; None for the whole partition. A spec without fields has one
    partition."""
    range_columns: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, spec: PartitionSpec, files: Sequence[DataFile], defined: DefinedPartitions | None, table: str
    ) -> OverwrittenPartitions:
        """RP-29: the partitions of the new files, which were written with the spec. Raises CommitConflictError if a
        file crosses a border of range partitions, because they were changed after it was written."""
        if defined is None:
            found = {partition_of(file) for file in files}
            return cls(spec, dict.fromkeys({_whole(spec)} if is_unpartitioned(spec) else found))
        by_partition: dict[Partition, set[Range]] = {}
        for file, ranges in zip(files, partitions_of_files(defined, files), strict=True):
            if isinstance(ranges, Straddling):
                raise CommitConflictError(
                    f"the range partitions of {table} were changed while rows were written to overwrite them: "
                    f"{file.file_path} has rows of several partitions. Nothing was changed. Run the statement again."
                )
            partition = _whole(spec) if is_unpartitioned(spec) else partition_of(file)
            by_partition.setdefault(partition, set()).update(ranges)
        key = defined.key
        return cls(
            spec,
            {partition: _Ranges.of(key, sorted(ranges)) for partition, ranges in by_partition.items() if ranges},
            key.field_ids,
        )

    def may_reach(self, data: DataFile) -> bool:
        """Whether a data file may lose rows, judged by its spec and its bounds."""
        if not self._is_routed(data):
            return any(ranges is None or ranges.may_reach(data) for ranges in self.ranges.values())
        partition = self._partition_of(data)
        if partition not in self.ranges:
            return False
        ranges = self.ranges[partition]
        return ranges is None or ranges.may_reach(data)

    def holds(self, data: DataFile) -> bool:
        """Whether a file for which `may_reach` is true loses all its rows."""
        if not self._is_routed(data):
            return False
        ranges = self.ranges[self._partition_of(data)]
        return ranges is None or ranges.holds(data)

    def _is_routed(self, data: DataFile) -> bool:
        """Whether all rows of the file belong to one partition of the spec."""
        return is_unpartitioned(self.spec) or data.spec_id == self.spec.spec_id

    def _partition_of(self, data: DataFile) -> Partition:
        return _whole(self.spec) if is_unpartitioned(self.spec) else partition_of(data)

    def rows_in(self, batch: pa.RecordBatch, router: SpecRouter, data: DataFile) -> Flags:
        """The mask of the rows that a file for which `may_reach` is true loses."""
        if self._is_routed(data):
            return self._of_partition(self._partition_of(data), batch)
        route = router.route(batch)
        codes = np.zeros(batch.num_rows, np.int64) if route.codes is None else route.codes
        found = np.zeros(batch.num_rows, np.bool_)
        for code, values in enumerate(route.partitions):
            partition = partition_identity(self.spec.spec_id, values)
            if partition in self.ranges:
                found |= (codes == code) & self._of_partition(partition, batch)
        return found

    def _of_partition(self, partition: Partition, batch: pa.RecordBatch) -> Flags:
        ranges = self.ranges[partition]
        return np.ones(batch.num_rows, np.bool_) if ranges is None else ranges.rows_in(batch)


def _whole(spec: PartitionSpec) -> Partition:
    """The only partition of a spec without fields. It covers files of any spec."""
    return partition_identity(spec.spec_id, (None,) * len(spec.fields))


def _rows_in(task: RowTask, overwritten: OverwrittenPartitions, context: ReadContext) -> PositionSet:
    """Positions of the rows in one of the partitions."""
    sources = {*(field.source_id for field in overwritten.spec.fields), *overwritten.range_columns}
    columns = context.schema.select(*(context.schema.find_column_name(field_id) or "" for field_id in sources))
    router = SpecRouter(overwritten.spec, columns)
    found = []
    for run in prepare_task(task, replace(context, selected=columns)):
        first = run.start_row
        for batch in read_stored(run).to_batches():
            mask = overwritten.rows_in(batch, router, task.data_file)
            found.append(PositionSet.from_mask(mask).shifted(first))
            first += batch.num_rows
    return PositionSet.union_of(found)
