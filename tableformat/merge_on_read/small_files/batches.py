"""Chooses the tasks that are resolved and read together: adjacent small files, within limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from tableformat.merge_on_read.task import NarrowedTask, RowTask
from tableformat.metadata.content_file import DataFile

SMALL_FILE_BYTES: Final = 1024 * 1024
"""Files up to this size are read completely. Leaving columns out saves less than each read costs; on an object store
that is a request of tens of milliseconds."""
BATCH_FILE_BYTES: Final = 4 * 1024 * 1024
"""The stored size of the files of a batch."""
BATCH_ROWS: Final = 128 * 1024

Batch: TypeAlias = tuple[RowTask, ...]
"""Adjacent small files of one plan."""


def is_small(task: RowTask) -> bool:
    """Whether a task may be in a batch: a small file of a scan whose deletes are known, or of chosen rows."""
    return is_read_whole(task.data_file) and (
        is_of_chosen_rows(task) if isinstance(task, NarrowedTask) else not task.range_delete_files
    )


def is_read_whole(data: DataFile) -> bool:
    """Whether the file is read at once, for any columns."""
    return data.file_size_bytes <= SMALL_FILE_BYTES and data.record_count <= BATCH_ROWS


def is_of_chosen_rows(task: NarrowedTask) -> bool:
    """Whether the rows are known and no delete remains to be applied, as in tasks of `only_rows`."""
    return not (task.scan.has_deletes or task.dead_in is not None or task.constants)


def batched(tasks: Iterable[RowTask]) -> Iterator[RowTask | Batch]:
    """The tasks in order, with adjacent small ones in batches."""
    batch: list[RowTask] = []
    size_bytes = row_count = 0
    for task in tasks:
        if not is_small(task):
            if batch:
                yield tuple(batch)
                batch, size_bytes, row_count = [], 0, 0
            yield task
            continue
        size_bytes += task.data_file.file_size_bytes
        row_count += task.data_file.record_count
        if batch and (size_bytes > BATCH_FILE_BYTES or row_count > BATCH_ROWS):
            yield tuple(batch)
            batch, size_bytes, row_count = [], task.data_file.file_size_bytes, task.data_file.record_count
        batch.append(task)
    if batch:
        yield tuple(batch)
