"""Finds the rows of a draft that concurrently committed keyed deletes also reach (CP-6, SP-20)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from tableformat.commit.change import FileKey, file_key
from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.small_files.joint_positions import deleted_positions_of
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.context import merge_context
from tableformat.scan.planner import match_deletes

_THREADS: Final = max(4, os.cpu_count() or 1)


class ReachedRows:
    """Reads the delete columns of the data files, like a scan, and only if their bounds do not decide. Results for a
    delete and a data file are kept for the next commit attempt."""

    def __init__(self) -> None:
        self._missed: dict[str, frozenset[FileKey]] = {}
        """Path of a data file -> deletes that reach no relevant row of it."""

    def files(
        self,
        head: SnapshotView,
        deletes: Sequence[DeleteFile],
        data_files: Sequence[DataFile],
        rows: Mapping[str, PositionSet],
    ) -> frozenset[str]:
        """The paths of the data files in which a delete reaches one of the rows at `rows[path]`, or any row if the file
        has no entry there. All of the files are live in `head`."""
        asked: dict[frozenset[FileKey], list[DataFile]] = {}
        keys = frozenset(map(file_key, deletes))
        for data in data_files:
            asked.setdefault(keys - self._missed.get(data.file_path, frozenset()), []).append(data)
        reached: set[str] = set()
        for unseen, group in asked.items():
            if not unseen:
                continue
            reached |= self._reached(head, [each for each in deletes if file_key(each) in unseen], group, rows)
        for data in data_files:
            if data.file_path not in reached:
                self._missed[data.file_path] = self._missed.get(data.file_path, frozenset()) | keys
        return frozenset(reached)

    @staticmethod
    def _reached(
        head: SnapshotView,
        deletes: Sequence[DeleteFile],
        data_files: Sequence[DataFile],
        rows: Mapping[str, PositionSet],
    ) -> set[str]:
        context = merge_context(head)
        tasks, covered = match_deletes(head, data_files, deletes, context)
        met = [task for task in tasks if task.has_deletes]
        reached = {data.file_path for data in covered}
        for task, found in zip(met, deleted_positions_of(met, context, thread_count=_THREADS), strict=True):
            path = task.data_file.file_path
            mattering = rows.get(path)
            if found if mattering is None else len(mattering.minus(found)) < len(mattering):
                reached.add(path)
        return reached
