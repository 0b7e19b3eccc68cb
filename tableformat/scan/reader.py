"""Reads scan tasks as Arrow tables: opens files, drops deleted rows, filters, projects.

    prepare a task    read footer and deleted positions, exclude row groups by statistics and deletes       threads
    read a run        some row groups of one file: decode, delete, filter                                   threads
    hand over         in the order of the tasks and rows                                                    caller

A fixed number of runs is processed at the same time, so memory does not grow with the table. Adjacent small files go
through the same stages in batches (`small_files`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Final, TypeVar

import pyarrow as pa

from tableformat.deletes.positions import PositionSet
from tableformat.filters.bound_filter import FALSE, BoundFilter, bind_filter
from tableformat.filters.row_filter import filter_rows
from tableformat.merge_on_read.alive_rows import alive_rows
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.small_files.batches import batched, is_read_whole
from tableformat.merge_on_read.task import FileScanTask, NarrowedTask, RowTask
from tableformat.metadata.content_file import DataFile
from tableformat.parquet.parquet_file import OpenedFile, unreadable_as_corrupt
from tableformat.parquet.projection import FileProjection, identity_constants, narrowed, with_filter_columns
from tableformat.scan.context import ReadContext
from tableformat.scan.measures import Step
from tableformat.scan.row_groups import is_ruled_out
from tableformat.scan.row_lineage_columns import with_inherited_lineage
from tableformat.scan.small_files import SmallFileReader, SmallFilesRun

ROW_GROUP_RUN_BYTES: Final = 32 * 1024 * 1024
"""Maximum size of the row groups that are read by one call: encoded, before compression."""
ROW_GROUP_RUN_ROWS: Final = 256 * 1024
"""Maximum rows of the row groups that are read by one call. Dictionary-encoded columns are much larger decoded than in
the file."""
_PARALLEL_FROM_ROWS: Final = 20_000
"""With at least this many rows, decoding the columns of one call on several threads is worth its cost."""
_REMOTE_READERS: Final = 8
_REMOTE_FETCHERS: Final = 16
"""Small files of an object store that are requested at the same time."""
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class RowGroupRun:
    """Consecutive row groups of one file."""

    task: OpenTask
    row_groups: tuple[int, ...]
    start_row: int
    row_count: int


@dataclass(frozen=True, slots=True)
class OpenTask:
    """A task whose footer has been read and whose deletes are positions."""

    task: RowTask
    context: ReadContext
    bound: BoundFilter
    projection: FileProjection
    deleted: PositionSet
    whole: OpenedFile | None = None
    """A small file, in memory until its rows are read."""

    def file(self) -> AbstractContextManager[OpenedFile]:
        """The file, opened for a block."""
        if self.whole is not None:
            return nullcontext(self.whole)
        return self.context.merge.open_data_file(self.task.data_file)


def read_task(task: RowTask, context: ReadContext) -> Iterator[pa.RecordBatch]:
    """The live matching rows of one task, in file order, in `context.arrow_schema`.

    Raises CorruptFileError with the name of a file that cannot be read; nothing is skipped silently.
    """
    for rows in read_tables([task], context):
        yield from rows.to_batches()


def read_tables(tasks: Iterable[RowTask], context: ReadContext, *, narrow: bool = True) -> Iterator[pa.Table]:
    """The rows of the tasks in order, some row groups or some small files at a time. No table is empty.

    The tasks of a sequence belong to one plan, and its small files are read together; tasks of an iterator are read one
    by one. With `narrow=False`, the columns that only the filter needed are kept.
    """
    workers = pa.cpu_count() if context.has_local_files else max(_REMOTE_READERS, pa.cpu_count())
    pool = ThreadPoolExecutor(workers, thread_name_prefix="scan")
    fetchers = None if context.has_local_files else ThreadPoolExecutor(_REMOTE_FETCHERS, thread_name_prefix="fetch")
    try:
        prepared = _in_order(pool, _preparations(tasks, context, fetchers), ahead=2 * workers)
        runs: Iterator[RowGroupRun | SmallFilesRun] = (run for found in prepared for run in found)
        # One more than the workers, so that none waits while the caller handles a result.
        first = next(runs, None)
        if isinstance(first, RowGroupRun) and context.has_local_files:
            # Read the first run of a local file alone: a caller who needs few rows does not pay for decoding more. In
            # an object store the next runs are requested concurrently.
            if (rows := _read_run(first, narrow)).num_rows:
                yield rows
            del rows
        elif first is not None:
            runs = chain([first], runs)
        calls = (partial(_read_run, run, narrow) for run in runs)
        for rows in _in_order(pool, calls, ahead=workers + 1):
            if rows.num_rows:
                yield rows
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if fetchers is not None:
            fetchers.shutdown(wait=True, cancel_futures=True)


def _preparations(
    tasks: Iterable[RowTask], context: ReadContext, fetchers: Executor | None
) -> Iterator[Callable[[], Sequence[RowGroupRun | SmallFilesRun]]]:
    if not isinstance(tasks, Sequence):
        yield from (partial(prepare_task, task, context) for task in tasks)
        return
    planned = [task for task in tasks if isinstance(task, FileScanTask)]
    small_files = SmallFileReader(planned, context, ROW_GROUP_RUN_BYTES, fetchers)
    for portion in batched(tasks):
        yield (
            partial(small_files.prepare, portion)
            if isinstance(portion, tuple)
            else partial(prepare_task, portion, context)
        )


def _in_order(pool: ThreadPoolExecutor, calls: Iterable[Callable[[], _Answer]], *, ahead: int) -> Iterator[_Answer]:
    """The results in the order of the calls. At most `ahead` calls are running or wait to be returned.

    A single call runs in this thread, because starting threads would take most of the time for a small table.
    """
    running: deque[Future[_Answer]] = deque()
    source = iter(calls)
    first = list(islice(source, 2))
    if len(first) == 1:
        yield first[0]()
        return
    for call in chain(first, source):
        running.append(pool.submit(call))
        if len(running) >= ahead:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def prepare_task(task: RowTask, context: ReadContext) -> list[RowGroupRun]:
    """The parts of the task's file that may have a row to return. Also computes the deleted positions."""
    bound = bind_filter(task.residual, context.schema)
    if bound is FALSE:
        return []
    deleted = _deleted(task, context)
    if len(deleted) == task.data_file.record_count:
        return []
    is_whole = is_read_whole(task.data_file)
    with context.measure(Step.OPEN) as done, _opened(task.data_file, is_whole, context) as file:
        spec = context.merge.specs[task.data_file.spec_id]
        given = task.constants if isinstance(task, NarrowedTask) else {}
        constants = {**identity_constants(task.data_file, spec), **given}
        wanted = with_filter_columns(context.selected, context.schema, bound)
        result = context.arrow_schema if wanted is context.selected else None
        projection = FileProjection.of(file.schema, wanted, file.location, constants, result=result)
        opened = OpenTask(task, context, bound, projection, deleted, file if is_whole else None)
        runs = _row_group_runs(opened, file, constants)
        done.file_paths.add(file.location)
        done.row_count += sum(run.row_count for run in runs)
        return runs


def _opened(data: DataFile, is_whole: bool, context: ReadContext) -> AbstractContextManager[OpenedFile]:
    """The file: read whole into memory, or only opened."""
    return nullcontext(context.merge.read_data_file(data)) if is_whole else context.merge.open_data_file(data)


def _deleted(task: RowTask, context: ReadContext) -> PositionSet:
    with context.measure(Step.FIND_DELETED) as done:
        deleted = deleted_positions(task, context.merge)
        done.row_count += len(deleted)
        if task.has_deletes:
            done.file_paths.add(task.data_file.file_path)
    return deleted


def _row_group_runs(opened: OpenTask, file: OpenedFile, constants: dict[int, Any]) -> list[RowGroupRun]:
    """Row groups that may have a row to return. Consecutive ones are joined up to `ROW_GROUP_RUN_BYTES`.

    In a local file, the first row group stays separate, for callers who need few rows. In an object store that would
    cost another request.
    """
    starts = file.row_group_starts.tolist()
    held = opened.context.merge.caches.bloom_filters
    runs: list[list[int]] = []
    run_bytes = 0
    joined_from = 1 if opened.context.has_local_files else 0
    for group in range(file.row_group_count):
        if opened.deleted.count(starts[group], starts[group + 1] - starts[group]) == starts[group + 1] - starts[group]:
            continue
        row_group = file.metadata.row_group(group)
        if is_ruled_out(opened.bound, file, row_group, constants, held):
            continue
        size_bytes = sum(row_group.column(leaf).total_uncompressed_size for leaf in opened.projection.leaf_indices)
        row_count = starts[group + 1] - starts[runs[-1][0]] if runs else 0
        fits = run_bytes + size_bytes <= ROW_GROUP_RUN_BYTES and row_count <= ROW_GROUP_RUN_ROWS
        if len(runs) > joined_from and runs[-1][-1] == group - 1 and fits:
            runs[-1].append(group)
            run_bytes += size_bytes
        else:
            runs.append([group])
            run_bytes = size_bytes
    return [RowGroupRun(opened, tuple(run), starts[run[0]], starts[run[-1] + 1] - starts[run[0]]) for run in runs]


def _read_run(run: RowGroupRun | SmallFilesRun, narrow: bool) -> pa.Table:
    if isinstance(run, SmallFilesRun):
        return run.reader.read(run, narrow)
    opened = run.task
    stored = read_stored(run)
    with opened.context.measure(Step.DROP_DELETED) as done:
        rows = alive_rows(stored, opened.deleted, run.start_row)
        done.file_paths.add(opened.task.data_file.file_path)
        done.row_count += rows.num_rows
    with opened.context.measure(Step.FILTER) as done:
        rows = filter_rows(opened.bound, rows)
        done.file_paths.add(opened.task.data_file.file_path)
        done.row_count += rows.num_rows
        return narrowed(rows, opened.context.arrow_schema) if narrow else rows


def read_stored(run: RowGroupRun) -> pa.Table:
    """Every row of the run, deleted or not, with the columns to return and the columns of the filter."""
    opened = run.task
    with opened.context.measure(Step.DECODE) as done:
        with opened.file() as file, unreadable_as_corrupt(file.location):
            decoded = file.reader().reader.read_row_groups(
                list(run.row_groups),
                column_indices=list(opened.projection.leaf_indices),
                use_threads=run.row_count >= _PARALLEL_FROM_ROWS,
            )
            if opened.context.meter is not None:
                done.file_paths.add(file.location)
                done.row_count += run.row_count
                done.size_bytes += _stored_bytes(file, run)
        rows = opened.projection.apply(decoded, run.row_count)
        if opened.context.has_stored_lineage:
            return rows
        return with_inherited_lineage(rows, opened.context.row_lineage, opened.task.data_file, run.start_row)


def _stored_bytes(file: OpenedFile, run: RowGroupRun) -> int:
    """Size of the run's column chunks in the file."""
    groups = [file.metadata.row_group(number) for number in run.row_groups]
    return sum(
        group.column(leaf).total_compressed_size for group in groups for leaf in run.task.projection.leaf_indices
    )
