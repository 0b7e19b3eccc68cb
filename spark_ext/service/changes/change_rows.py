"""The rows of a change feed for the Java side: rows of data files, with the columns of the feed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from spark_ext.service.reads.file_list import FileList
from spark_ext.service.reads.scans import positions_of_tasks
from tableformat.changes.plan import ChangeTask
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.metadata.change_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION

FEED_COLUMNS: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
"""The columns of Spark's changelogs."""
_TIMESTAMP: Final = pa.timestamp("us", "UTC")


def add_changes(files: FileList, tasks: Sequence[ChangeTask], context: MergeContext) -> None:
    """CF-5: add the rows of each task. A file is added once for each of its tasks."""
    for task, left_out in zip(tasks, positions_of_tasks([task.scan for task in tasks], context), strict=True):
        if len(left_out) < task.scan.data_file.record_count:
            files.add(task.scan.data_file, left_out, constants=_constants(task))


def _constants(task: ChangeTask) -> dict[str, pa.Scalar]:
    return {
        CHANGE_TYPE.name: pa.scalar(task.change_type.value),
        COMMIT_VERSION.name: pa.scalar(task.commit_version, pa.int64()),
        COMMIT_TIMESTAMP.name: pa.scalar(task.timestamp_ms * 1000, _TIMESTAMP),
    }
