"""`lake.db.t.changes`: the rows that snapshots inserted and deleted, with the options and columns of Iceberg's
changelog tables.

`create_changelog_view` builds its views on this table. It is available in every Spark version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa

from spark_ext.service.reads.file_list import FileList
from spark_ext.service.reads.scans import DELETED, positions_of_tasks
from spark_ext.service.registry import Answer, Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.states.option_values import BRANCH, CONSUMER, check_options, moment_of, number_of
from spark_ext.service.wire.expressions import pruning_filter
from tableformat.changes.changed_rows import changed_rows
from tableformat.changes.plan import ChangeTask
from tableformat.changes.range import ChangeRange, change_range, newest_at, view_until
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError
from tableformat.metadata.change_columns import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.history.consumers import consumer_of

_START_OPTIONS: Final = ("start-snapshot-id", "start-timestamp", CONSUMER)
END_OPTIONS: Final = ("end-snapshot-id", "end-timestamp")
_OPTIONS: Final = (*_START_OPTIONS, *END_OPTIONS, BRANCH, "split-size", "file-open-cost")


@method("changelog_files")
def changelog_files(session: Session, request: Request) -> Answer:
    """SP-34: the files with the rows of a range, in the form of `scan_files`."""
    arguments = request.arguments
    view = session.view(Pin.from_json(arguments["pin"]))
    changes = changelog_range(view, arguments["options"], name=".".join(request.table))
    context = session.merge_context(view)
    where = pruning_filter(arguments["predicates"], view.schema)
    files = FileList(view, context, arguments["columns"], arguments["predicates"])
    snapshots = [snapshot for snapshot in changes.snapshots if not changes_no_row(snapshot)]
    tasks = list(changed_rows(view, snapshots, where, context=context))
    left_out = positions_of_tasks([task.scan for task in tasks], context)
    for task, positions in zip(tasks, left_out, strict=True):
        if len(positions) < task.scan.data_file.record_count:
            files.add(task.scan.data_file, positions, constants=_constants(task))
    return files.answer()


def changelog_range(view: SnapshotView, options: Mapping[str, str], *, name: str) -> ChangeRange:
    """CF-1: the snapshots that the options select, excluding the first and including the last. Rows have the columns of
    the view.

    Raises UnknownOptionError, InvalidArgumentError for two bounds at the same end, and SnapshotNotFoundError.
    """
    given = {option.casefold(): value for option, value in options.items()}
    check_options(given, _OPTIONS, where=f"the changes of {name}")
    for bounds in (_START_OPTIONS, END_OPTIONS):
        named = [option for option in bounds if option in given]
        if len(named) > 1:
            raise InvalidArgumentError(
                f"the changes of {name}: {' and '.join(named)} define the same bound; pass only one of them."
            )
    from_ms, to_ms = moment_of(given, "start-timestamp"), moment_of(given, "end-timestamp")
    if from_ms is not None and to_ms is not None and from_ms > to_ms:
        raise InvalidArgumentError(
            f"the changes of {name}: start-timestamp, {from_ms}, is later than end-timestamp, {to_ms}. Swap them."
        )
    until = _until(view, given)
    begin = number_of(given, "start-snapshot-id")
    if CONSUMER in given:
        begin = consumer_of(view.metadata, given[CONSUMER]).snapshot_id
    if from_ms is not None:
        found = newest_at(until, from_ms)
        begin = None if found is None else found.snapshot_id
    return change_range(until, begin)


def _until(view: SnapshotView, given: Mapping[str, str]) -> SnapshotView:
    """The view at the last snapshot of the range. Rows have the current columns of the table."""
    to_ms = moment_of(given, "end-timestamp")
    if to_ms is not None:
        return replace(view_until(view, to_ms), schema=view.schema)
    last = number_of(given, "end-snapshot-id")
    if last is None:
        return view
    line = {snapshot.snapshot_id: snapshot for snapshot in ancestors(view.metadata, view.snapshot)}
    if last not in line:
        raise SnapshotNotFoundError(
            f"snapshot {last}, the end of the changes, is not an ancestor of the head of the branch; it may have "
            "expired."
        )
    return replace(view, snapshot=line[last])


def _constants(task: ChangeTask) -> dict[str, pa.Scalar]:
    return {
        CHANGE_TYPE.name: pa.scalar(task.change_type.value.upper()),
        CHANGE_ORDINAL.name: pa.scalar(task.ordinal, pa.int32()),
        COMMIT_SNAPSHOT_ID.name: pa.scalar(task.snapshot_id, pa.int64()),
        DELETED: pa.scalar(False),
    }
