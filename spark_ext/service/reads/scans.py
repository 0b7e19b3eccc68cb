"""Answers for scans: their size, the files, deleted rows, and how columns are found in each file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from spark_ext.service.reads.appended_files import appended_files
from spark_ext.service.reads.column_statistics import column_statistics, distinct_counts
from spark_ext.service.reads.file_list import FileList
from spark_ext.service.reads.key_deletes import KeyDeletes, without_key_deletes
from spark_ext.service.registry import Answer, Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.wire.expressions import exact_filter, pruning_filter
from spark_ext.service.wire.partition_predicates import PartitionPredicates
from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.small_files.joint_positions import deleted_positions_of
from tableformat.merge_on_read.task import FileScanTask, NarrowedTask, RowTask
from tableformat.properties import OPEN_FILE_COST, positive_int
from tableformat.scan.plan import ScanPlan
from tableformat.scan.scan_report import scan_counts

_RESOLVE_THREADS: Final = max(4, os.cpu_count() or 1)
_TASK_SIZES: Final = {"split-size": "read.split.target-size", "file-open-cost": OPEN_FILE_COST}
DELETED: Final = "_deleted"
_ALIVE: Final = {DELETED: pa.scalar(False)}


@method("estimate")
def estimate(session: Session, request: Request) -> dict[str, Any]:
    """Size and row count of the files to read, before deletes, and column statistics for `statistics_of`."""
    if (appends := request.arguments.get("appends")) is not None:
        files = appended_files(session.view(Pin.from_json(request.arguments["pin"])), appends)
        return {
            "data_bytes": sum(file.file_size_bytes for file in files),
            "record_count": sum(file.record_count for file in files),
        }
    plan = plan_of(session, request)
    size = {"data_bytes": plan.data_bytes, "record_count": plan.record_count}
    columns = request.arguments.get("statistics_of")
    if columns is None:
        return size
    view = session.view(Pin.from_json(request.arguments["pin"]))
    files = [task.data_file for task in plan.tasks]
    counts = distinct_counts(view.metadata, view.snapshot)
    return {**size, "columns": column_statistics(columns, view.schema, files, counts)}


@method("decided_predicates")
def decided_predicates(session: Session, request: Request) -> list[int]:
    """SP-41, SP-46: the indexes of the predicates that hold for all rows, or for none, of each file to read.

    Predicates with transforms are evaluated on partitions only, which `narrowed` checks again. Files that are deleted
    completely have no residual, but a read of `_deleted` shows their rows.
    """
    pin, predicates = Pin.from_json(request.arguments["pin"]), request.arguments["predicates"]
    view = session.view(pin)
    in_partitions = PartitionPredicates(predicates, view)
    by_partition = in_partitions.decided_by(session.plan(pin, _where(session, pin, request)))
    others = [index for index in range(len(predicates)) if index not in in_partitions.with_transforms]
    exact = exact_filter([predicates[index] for index in others], view.schema)
    if not others or exact is None:
        return by_partition
    plan = in_partitions.narrowed(session.plan(pin, exact))
    is_decided = not plan.covered and all(isinstance(task.residual, AlwaysTrue) for task in plan.tasks)
    return sorted([*by_partition, *others]) if is_decided else by_partition


@method("scan_files")
def scan_files(session: Session, request: Request) -> Answer:
    """The files to read, each with its deletes.

    Executors compare range and equality deletes with rows (decision 65). Deletes by position, and the deletes that
    executors cannot compare, are resolved here to positions, in parallel, and cached.

    If `_deleted` is among the `columns`, files that are deleted completely are included because their rows are shown,
    except in a statement that changes rows (SP-95). SP-51: "counts" has the counts of the scan report.
    """
    pin, columns = Pin.from_json(request.arguments["pin"]), request.arguments["columns"]
    view = session.view(pin)
    context = session.merge_context(view)
    if (appends := request.arguments.get("appends")) is not None:
        files = FileList(view, context, columns, request.arguments["predicates"])
        for file in appended_files(view, appends):
            files.add(file, PositionSet.empty(), constants=_ALIVE)
        return files.answer()
    plan = plan_of(session, request)
    tasks: list[RowTask] = list(plan.tasks)
    changes_rows = request.arguments.get("changes_rows", False)
    shows_deleted = DELETED in columns and not changes_rows
    if shows_deleted:
        tasks += [
            NarrowedTask(scan=FileScanTask(data_file=file), known_positions=PositionSet.every(file.record_count))
            for file in plan.covered
        ]
    constants = _ALIVE if changes_rows else None
    key_deletes = KeyDeletes(view, context, tasks)
    files = FileList(view, context, columns, request.arguments["predicates"], key_deletes)
    compared = [key_deletes.are_compared(task) and files.is_read_by_id(task.data_file) for task in tasks]
    by_position = [
        without_key_deletes(task) if is_compared else task for task, is_compared in zip(tasks, compared, strict=True)
    ]
    for task, is_compared, positions in zip(tasks, compared, positions_of_tasks(by_position, context), strict=True):
        description = key_deletes.add(task) if is_compared else None
        is_covered = is_compared and description is None
        deleted = PositionSet.every(task.data_file.record_count) if is_covered else positions
        if len(deleted) < task.data_file.record_count or shows_deleted:
            files.add(task.data_file, deleted, compared=description, constants=constants)
    answer = files.answer()
    # Partition predicates with transforms, and values found at run time, also skip files of the plan.
    skipped = plan.pruning.data_file_count - len(plan.tasks)
    answer.result["counts"] = scan_counts(plan) | {"skipped-data-files": skipped}
    answer.result["tasks"] = _task_sizes(view.metadata.properties)
    return answer


def _task_sizes(properties: Mapping[str, str]) -> dict[str, int]:
    """SP-57: sizes from table properties, by the option that overrides them. Properties that are not set are left to
    Spark."""
    return {option: positive_int(properties, name, 1) for option, name in _TASK_SIZES.items() if name in properties}


def plan_of(session: Session, request: Request) -> ScanPlan:
    """The files that match the predicates of a request.

    SP-50: the last `runtime_count` predicates were added while the statement ran, and only select files. They must not
    affect the plan itself: it omits deletes that reach no row matching its filter, and Spark does not check the rows of
    an UPDATE against these predicates.
    """
    pin, arguments = Pin.from_json(request.arguments["pin"]), request.arguments
    view, predicates = session.view(pin), arguments["predicates"]
    asked = predicates[: len(predicates) - arguments.get("runtime_count", 0)]
    planned = session.plan(pin, pruning_filter(asked, view.schema))
    plan = PartitionPredicates(asked, view).narrowed(planned, arguments.get("decided", ()))
    if len(asked) == len(predicates):
        return plan
    chosen = session.plan(pin, _where(session, pin, request))
    paths = {file.file_path for file in (*(task.data_file for task in chosen.tasks), *chosen.covered)}
    return replace(
        plan,
        tasks=tuple(task for task in plan.tasks if task.data_file.file_path in paths),
        covered=tuple(file for file in plan.covered if file.file_path in paths),
    )


def _where(session: Session, pin: Pin, request: Request) -> BooleanExpression:
    return pruning_filter(request.arguments["predicates"], session.view(pin).schema)


def positions_of_tasks(tasks: Sequence[RowTask], context: MergeContext) -> list[PositionSet]:
    """The deleted positions of each task. The tasks of a scan belong to one plan."""
    return deleted_positions_of(tasks, context, thread_count=_RESOLVE_THREADS)
