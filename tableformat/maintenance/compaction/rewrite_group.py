"""Rewrites one compaction group: the alive rows of its data files into new files, sorted by the key (MT-43 to MT-46)
or, for a table without a key, as chosen by the caller (MT-93).

    data files -> alive rows -> sorted runs -> one sorted stream -> row groups -> files of even row counts

A pure function of plain data, so that any process can run it: its input is in the task and the context, its output is
returned as StagedFiles. Nothing is committed here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyiceberg.types import BinaryType

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.bounds import KeyBounds, key_bounds
from tableformat.keys.encoding import AFTER_MARKER
from tableformat.keys.key_columns import KeyColumns
from tableformat.maintenance.compaction.alive_batches import alive_batches, is_sorted_by
from tableformat.maintenance.compaction.group_output import DividedOutput, GroupOutput, row_groups
from tableformat.maintenance.compaction.read_ahead import ReadAhead
from tableformat.maintenance.compaction.row_order import ORDER_COLUMN, OrderBytes, RowOrder, sort_order_id
from tableformat.maintenance.compaction.sorted_merge import MergeOrder, SortedRun, merged, spilled
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.row_lineage import schema_with_row_lineage
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import TARGET_FILE_SIZE_BYTES
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.files import PartitionPlaces, Straddling
from tableformat.scan.context import ReadContext, merge_context
from tableformat.write.context import WriteContext
from tableformat.write.created_files import removed_on_failure
from tableformat.write.staged import StagedFiles

FAN_IN_MAX: Final = 64
_FAN_IN_MIN: Final = 4
_PAGE_BYTES: Final = 1024 * 1024
"""Size of a decoded Parquet page. Each column of each open file needs one page, and a dictionary of the same size if
its values vary in width."""
_MERGE_SHARE: Final = 4
"""A quarter of the memory is for merging and another quarter for pages. Half is for row groups that wait to be written.
"""
_SPLIT_AT: Final = 2
"""A file that grows to this many target sizes is split although not all of its rows are written."""

OnRows = Callable[[int], None]
"""Called with the number of rows written since the last call; may raise to cancel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteTask:
    """Data files of one spec and partition that are rewritten into others. Plain data."""

    tasks: tuple[FileScanTask, ...]
    """The data files, each with every delete of the planned snapshot that applies to it."""
    spec_id: int
    partition: tuple[object, ...]
    sequence_number: int
    """The sequence number of the planned snapshot, which the new files carry (CP-7)."""
    target_file_size_bytes: int
    order: RowOrder | None = None
    """MT-93: the order of the rows of a table without a key; None: as in the files."""


@dataclass(frozen=True)
class RewriteContext:
    """The data that all groups of one table version share. Picklable: caches start empty in another process."""

    read: ReadContext
    write: WriteContext

    @staticmethod
    def of(view: SnapshotView) -> RewriteContext:
        """MT-49: on a version 3 table, rows keep their row id and the sequence number of their last update."""
        write = WriteContext.of(view.metadata, view.io)
        schema = view.schema
        if view.metadata.format_version >= 3:
            write, schema = write.with_row_lineage(), schema_with_row_lineage(schema)
        return RewriteContext(ReadContext(merge_context(view), schema, schema), write)


def rewrite_group(task: RewriteTask, context: RewriteContext, on_rows: OnRows | None = None) -> StagedFiles:
    """MT-43: write the alive rows of the group to new data files; without alive rows, to none.

    The files have the group's spec, partition and sequence number. They are sorted by the key, carry our marker, and
    are adjacent in key order. MT-63: the memory use stays within `tableformat.write.memory-bytes`. Only unsorted files,
    and runs if too many overlap, are spilled to the temporary directory. All files are removed if the rewrite fails.
    """
    write = replace(
        context.write,
        spec=context.write.spec_of(task.spec_id),
        properties={
            **context.write.properties,
            TARGET_FILE_SIZE_BYTES: str(_SPLIT_AT * task.target_file_size_bytes),
        },
    )
    if task.order is not None:
        write = replace(write, sort_order_id=sort_order_id(task.order, context.read.merge.metadata))
    inputs = [(each, deleted_positions(each, context.read.merge)) for each in task.tasks]
    alive_count = sum(each.data_file.record_count - len(deleted) for each, deleted in inputs)
    if alive_count == 0:
        return StagedFiles()
    alive_bytes = sum(
        each.data_file.file_size_bytes * (1 - len(deleted) / max(each.data_file.record_count, 1))
        for each, deleted in inputs
    )
    with ExitStack() as exits:
        created = exits.enter_context(removed_on_failure(write))
        directory = exits.enter_context(tempfile.TemporaryDirectory(prefix="tableformat-rewrite-"))
        if task.order is None:
            rows = _sorted_rows(inputs, context.read, write, Path(directory))
        else:
            rows = _ordered_rows(inputs, task.order, context.read, write, Path(directory))
        ready = exits.enter_context(ReadAhead(row_groups(rows, write), depth=1))
        new_output = partial(
            GroupOutput,
            write,
            created,
            partition=task.partition,
            target_file_size_bytes=task.target_file_size_bytes,
            row_count=alive_count,
            bytes_per_row=alive_bytes / alive_count,
        )
        ranges = write.range_partitions
        divides = ranges is not None and _straddle(ranges, task)
        output: DividedOutput | GroupOutput = DividedOutput(ranges, new_output) if ranges and divides else new_output()
        exits.push(output)
        for row_group in ready:
            output.write(row_group)
            if on_rows is not None:
                on_rows(row_group.num_rows)
        files = output.finish()
    numbered = tuple(replace(file, sequence_number=task.sequence_number) for file in files)
    return StagedFiles(
        data_files=numbered,
        row_count=sum(file.record_count for file in numbered),
        written_bytes=sum(file.file_size_bytes for file in numbered),
    )


def _straddle(ranges: DefinedPartitions, task: RewriteTask) -> bool:
    """RP-16: whether the group has rows on both sides of a border of range partitions."""
    places = PartitionPlaces.of(ranges)
    return any(isinstance(places.of_file(each.data_file), Straddling) for each in task.tasks)


def _sorted_rows(
    inputs: list[tuple[FileScanTask, PositionSet]], read: ReadContext, write: WriteContext, directory: Path
) -> Iterator[pa.RecordBatch]:
    """All alive rows in key order. For a table without a key: file by file."""
    memory_bytes = write.memory_bytes // _MERGE_SHARE
    if not write.key_field_ids:
        for task, deleted in inputs:
            yield from alive_batches(task, deleted, read, memory_bytes // 2)
        return
    key = KeyColumns.of(write.schema, write.key_field_ids)
    order = MergeOrder(key)
    fan_in = _fan_in([task for task, _ in inputs], read.arrow_schema, memory_bytes)
    batch_bytes = memory_bytes // (4 * min(len(inputs), fan_in) + 2)
    runs: list[SortedRun] = []
    for task, deleted in inputs:
        if is_sorted_by(task, read, write.key_field_ids):
            runs.append(_run_of_file(task, deleted, read, key_bounds(task.data_file, key), batch_bytes))
        else:
            unsorted = alive_batches(task, deleted, read, batch_bytes)
            runs += _runs_of_unsorted(unsorted, order, memory_bytes // 4, directory)
    yield from merged(runs, order, memory_bytes, directory, fan_in=fan_in)


def _ordered_rows(
    inputs: list[tuple[FileScanTask, PositionSet]],
    order: RowOrder,
    read: ReadContext,
    write: WriteContext,
    directory: Path,
) -> Iterator[pa.RecordBatch]:
    """MT-93: all alive rows of a table without a key, in the order of the caller."""
    assert not write.key_field_ids, "rows of a table with a key are in key order (FM-6)"
    order_bytes = OrderBytes(order, read.selected, [task.data_file for task, _ in inputs])
    merge_order = MergeOrder(KeyColumns((0,), (ORDER_COLUMN,), (BinaryType(),)))
    memory_bytes = write.memory_bytes // _MERGE_SHARE
    runs: list[SortedRun] = []
    for task, deleted in inputs:
        batches = map(order_bytes.with_order, alive_batches(task, deleted, read, memory_bytes // 6))
        runs += _runs_of_unsorted(batches, merge_order, memory_bytes // 4, directory)
    for rows in merged(runs, merge_order, memory_bytes, directory, fan_in=FAN_IN_MAX):
        yield rows.drop_columns([ORDER_COLUMN])


def _fan_in(tasks: Sequence[FileScanTask], schema: pa.Schema, memory_bytes: int) -> int:
    """The number of overlapping files that are read at the same time: as many as have their pages in memory."""
    page_count = sum(1 if pa.types.is_primitive(field.type) else 2 for field in schema)
    pages = [min(task.data_file.file_size_bytes, page_count * _PAGE_BYTES) for task in tasks]
    return max(_FAN_IN_MIN, min(FAN_IN_MAX, memory_bytes * len(pages) // max(sum(pages), 1)))


def _run_of_file(
    task: FileScanTask, deleted: PositionSet, read: ReadContext, bounds: KeyBounds, batch_bytes: int
) -> SortedRun:
    return SortedRun(bounds, lambda: alive_batches(task, deleted, read, batch_bytes))


def _runs_of_unsorted(
    batches: Iterator[pa.RecordBatch], order: MergeOrder, run_bytes: int, directory: Path
) -> Iterator[SortedRun]:
    """Unsorted rows as sorted runs on disk, each as large as the memory allows."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(batch)
        size += batch.nbytes
        if size >= run_bytes:
            yield _spilled_sorted(gathered, order, directory)
            size = 0
    if gathered:
        yield _spilled_sorted(gathered, order, directory)


def _spilled_sorted(gathered: list[pa.RecordBatch], order: MergeOrder, directory: Path) -> SortedRun:
    """Sorts the batches and spills them as one run. Empties the list."""
    together = pa.concat_batches(gathered)
    gathered.clear()
    rows = order.sorted(together)
    bounds = KeyBounds(order.encoded(rows, 0), order.encoded(rows, rows.num_rows - 1) + AFTER_MARKER)
    return spilled(bounds, [rows], directory)
