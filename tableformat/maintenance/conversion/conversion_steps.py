"""The steps that every conversion shares: convert the files of a slice, and describe the result as a change."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pyiceberg.io import FileIO
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import ChangeKind, FileKey, TableChange, file_key, file_keys
from tableformat.maintenance.conversion.conversion_plan import ConversionPlan, ConversionSlice, FileToConvert
from tableformat.maintenance.conversion.convert_files import (
    ConversionContext,
    ConversionTask,
    ConvertedFile,
    convert_files,
    covered_file,
    discard,
)
from tableformat.maintenance.delete_files.dead_deletes import DeadDelete, dead_deletes
from tableformat.maintenance.running.tasks import TaskRunner, Work
from tableformat.merge_on_read.deleted_positions import deletes_identity
from tableformat.metadata.content_file import DataFile

_TASKS_IN_SLICE: Final = 32
_TASK_BYTES: Final = 16 * 1024 * 1024
"""The most data files of a task, because the vectors of one task share a file. Fewer if otherwise some processors would
be idle."""
_TASK_FILES: Final = 64
_AT_ONCE: Final = os.cpu_count() or 1
"""Concurrent tasks in threads of this process."""


ConversionKey: TypeAlias = tuple[object, ...]
"""All inputs that determine the conversion of a data file."""


@dataclass(slots=True)
class ConversionProgress:
    """The progress of one plan."""

    plan: ConversionPlan
    context: ConversionContext
    file_count: int = 0
    """The number of converted data files."""
    last_snapshot_id: int | None = None
    """The newest snapshot of this plan (CP-21)."""
    removed: set[FileKey] = field(default_factory=set)
    """Data and delete files that were removed from the table."""
    changes: list[TableChange] = field(default_factory=list)
    """The committed changes."""

    def staying(self, files: Iterable[ConvertedFile]) -> list[DataFile]:
        """The data files of the plan that remain after `files` are converted too."""
        emptied = file_keys(file.task.data_file for file in files if file.is_emptied)
        return [data for data in self.plan.data_files if file_key(data) not in emptied | self.removed]


def convert_slice(
    runner: TaskRunner,
    io: FileIO,
    part: ConversionSlice,
    context: ConversionContext,
    waiting: dict[ConversionKey, ConvertedFile],
    *,
    is_dry_run: bool,
    tell: Callable[[int], None],
) -> dict[ConversionKey, ConvertedFile]:
    """The converted files of the slice. Files that are not in `waiting` are converted, and added to it.

    `tell` is called with the number of further files that are done.
    """
    wanted = {conversion_key(file, context): file for file in part.files}
    for key, file in wanted.items():
        if file.is_covered:
            waiting[key] = covered_file(file.task, context.merge)
    missing = [(key, file) for key, file in wanted.items() if key not in waiting]
    groups = list(_groups(missing))
    tasks = [ConversionTask(tuple(file.task for _, file in group), is_dry_run) for group in groups]
    work: Work[ConversionTask, ConversionContext, tuple[ConvertedFile, ...]] = Work(
        convert_files, context, lambda files: discard(io, files)
    )
    tell(len(wanted) - len(missing))
    with closing(runner.run(work, tasks, at_once=_AT_ONCE)) as results:
        for index, files in results:
            waiting.update(zip((key for key, _ in groups[index]), files, strict=True))
            tell(len(files))
    return {key: waiting[key] for key in wanted}


def conversion_key(file: FileToConvert, context: ConversionContext) -> ConversionKey:
    """MT-17: equal keys mean that a data file's conversion under an earlier plan is valid under this one.

    The key consists of the form of the new delete (format version), whether the whole file is removed, and every file,
    sequence number and span that determines the deleted rows.

    >>> from tableformat.maintenance.conversion.conversion_plan import FileToConvert
    >>> from tableformat.maintenance.conversion.convert_files import ConversionContext
    >>> def key_of_first_file():
    ...     task = table.scan(where="id1 = 'A'").plan().tasks[0]
    ...     return conversion_key(FileToConvert(task, is_covered=False), ConversionContext.of(table.view))
    >>> before = key_of_first_file()
    >>> result = table.append(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]}))
    >>> key_of_first_file() == before  # Nothing happened to the file: its conversion serves the next plan too.
    True
    >>> result = table.delete_prefix({"id1": "A", "id2": 3})
    >>> key_of_first_file() == before  # Another delete reaches it.
    False
    """
    return (context.write.format_version, file.is_covered, *deletes_identity(file.task, context.merge))


def _groups(
    files: Sequence[tuple[ConversionKey, FileToConvert]],
) -> Iterator[list[tuple[ConversionKey, FileToConvert]]]:
    """Adjacent files, grouped into one task each: many tasks for a large slice, one for a few small files."""
    whole = sum(file.weight for _, file in files)
    limit = max(whole / _TASKS_IN_SLICE, min(whole / _AT_ONCE, _TASK_BYTES))
    group: list[tuple[ConversionKey, FileToConvert]] = []
    weight = 0
    for each in files:
        if group and (weight + each[1].weight > limit or len(group) == _TASK_FILES):
            yield group
            group, weight = [], 0
        group.append(each)
        weight += each[1].weight
    if group:
        yield group


def dead_after(
    files: Iterable[ConvertedFile], part: ConversionSlice, so_far: ConversionProgress
) -> tuple[DeadDelete, ...]:
    """MT-10: deletes that match no row once the emptied data files are removed, without deletes that are removed
    anyway."""
    plan = so_far.plan
    replaced = (delete for file in files for delete in file.replaced)
    leaving = so_far.removed | file_keys((*part.leaving, *replaced))
    candidates = [delete for delete in plan.deletes if file_key(delete) not in leaving]
    return dead_deletes(plan.view, so_far.staying(files), candidates, so_far.context.merge)


def change_of_slice(
    files: Iterable[ConvertedFile], part: ConversionSlice, dead: Sequence[DeadDelete], so_far: ConversionProgress
) -> TableChange:
    plan = so_far.plan
    snapshot = plan.view.snapshot
    replaced = (delete for file in files for delete in file.replaced)
    return TableChange(
        operation=Operation.OVERWRITE,
        kind=ChangeKind.CONVERSION,
        added_delete_files=tuple(delete for file in files for delete in file.added),
        removed_data_files=tuple(file.task.data_file for file in files if file.is_emptied),
        removed_delete_files=(*part.leaving, *replaced, *(each.delete for each in dead)),
        planned_snapshot_id=snapshot.snapshot_id if snapshot else None,
        planned_sequence_number=plan.view.sequence_number,
        relied_on_snapshot_id=so_far.last_snapshot_id,
        # MT-15: a slice removes a delete only if bounds rule out the files of all later slices.
        resolved_data_files=frozenset(data.file_path for data in plan.data_files),
    )
