"""Reads the columns of small data files by which their deletes match rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa

from tableformat.merge_on_read.deleted_positions import MergeContext, missing_values
from tableformat.merge_on_read.small_files.key_rows import KeyRows
from tableformat.merge_on_read.task import FileScanTask
from tableformat.parquet.parquet_columns import LeafColumn
from tableformat.parquet.parquet_file import OpenedFile, leaf_values
from tableformat.storage.location import local_path

_REMOTE_READERS: Final = 8
"""The number of concurrent requests for the files of a batch. Batches are read concurrently too."""


def read_key_rows(task: FileScanTask, field_ids: Iterable[int], context: MergeContext) -> KeyRows:
    """DA-6: the columns with these field ids of a small file, which is opened and read once."""
    file = context.read_data_file(task.data_file)
    leaves = {field_id: file.leaves[field_id] for field_id in field_ids if field_id in file.leaves}
    rows = file.read_whole(sorted(leaf.index for leaf in leaves.values()))
    return key_rows_of(task, file, leaves, field_ids, rows, context)


def read_key_rows_of_files(tasks: Sequence[tuple[FileScanTask, Iterable[int]]], context: MergeContext) -> list[KeyRows]:
    """`read_key_rows` for several files. Files in an object store are read concurrently."""
    is_local = local_path(context.metadata.location) is not None
    if is_local or len(tasks) < 2:
        return [read_key_rows(task, field_ids, context) for task, field_ids in tasks]
    with ThreadPoolExecutor(min(_REMOTE_READERS, len(tasks)), thread_name_prefix="keys") as pool:
        reads = [pool.submit(read_key_rows, task, field_ids, context) for task, field_ids in tasks]
        return [read.result() for read in reads]


def key_rows_of(
    task: FileScanTask,
    file: OpenedFile,
    leaves: Mapping[int, LeafColumn],
    field_ids: Iterable[int],
    rows: pa.Table,
    context: MergeContext,
) -> KeyRows:
    """DA-6: the columns with these field ids. `leaves` are the ones that the file has; `rows` are all its rows with
    these columns."""
    missing = missing_values(task.data_file, context)
    columns = {
        field_id: leaf_values(rows, leaves[field_id].path)
        if field_id in leaves
        else missing(field_id).read(file, range(file.row_group_count))
        for field_id in field_ids
    }
    return KeyRows(task, file.row_count, file.sorted_by or (), columns)
