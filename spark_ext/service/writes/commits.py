"""Commits the files that Spark's tasks wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema

from spark_ext.service.reads.key_deletes import without_key_deletes
from spark_ext.service.registry import Request, method
from spark_ext.service.session import Pin, Session, handle_of
from spark_ext.service.wire.expressions import SparkExpression, any_of, exact_filter, pruning_filter
from spark_ext.service.writes.deletes import still_exact_filter
from spark_ext.service.writes.diverted_rows import is_refused_whole, publish_rows, rows_left_to_publish
from spark_ext.service.writes.equal_replacement import stage_replaced_values, values_to_replace
from spark_ext.service.writes.overwritten_partitions import OverwrittenPartitions, stage_overwritten_partitions
from spark_ext.service.writes.refused_rows import Diversion, divert, is_any_refused, rows_outside, uncovered_rows_error
from spark_ext.service.writes.row_operation import DELETE, refuse_unordered
from spark_ext.service.writes.staged_operations import deleted_keys_of, stage_deleted_keys, stage_operation
from spark_ext.service.writes.task_reports import (
    TaskReport,
    data_files_of,
    deleted_positions_of,
    messages_of,
    paths_of,
    prefixes_of,
    refuse_duplicates,
    reports_of,
    truncates_of,
)
from spark_ext.service.writes.whole_files import takes_whole_files
from spark_ext.service.writes.write_options import ISOLATION_LEVEL
from spark_ext.service.writes.write_plan import APPEND, OVERWRITE, OVERWRITE_PARTITIONS, WriteTarget
from tableformat.deletes.positions import PositionSet
from tableformat.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from tableformat.keys.table_key import key_names
from tableformat.maintenance.upkeep.after_commit import after_commit
from tableformat.merge_on_read.task import RowTask
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.run import run_verb
from tableformat.operations.verbs.delete import stage_delete
from tableformat.operations.verbs.delete_prefix import names_by_now
from tableformat.operations.verbs.overwrite import inside_of
from tableformat.operations.verbs.stale_messages import stage_replaced
from tableformat.properties import COPY_ON_WRITE, SERIALIZABLE, row_level_mode
from tableformat.scan.context import ReadContext
from tableformat.scan.matching_positions import matching_positions
from tableformat.storage.storage import delete_if_present
from tableformat.write.context import WriteContext
from tableformat.write.rows.distinct import rows_among
from tableformat.write.rows.replaced_range_checks import RowsInSpans, RowsMatchFilter
from tableformat.write.staged import StagedFiles, StagedMessages

_MERGE_COUNT: Final = "spark.merge-into.num-target-rows-"

Verb: TypeAlias = Callable[[Draft], None]
Reads: TypeAlias = "Sequence[Sequence[SparkExpression]]"
"""The predicates of each scan."""


@method("can_overwrite")
def can_overwrite(session: Session, request: Request) -> bool:
    """Whether an exact filter exists for the rows that the predicates match."""
    view = session.view(Pin.from_json(request.arguments["pin"]))
    return exact_filter(request.arguments["predicates"], view.schema) is not None


@method("commit_write")
def commit_write(session: Session, request: Request) -> dict[str, Any]:
    """Commit an append or an overwrite. A repeated call with the same application and batch id commits nothing.

    ST-2: `reads` are the predicates of the statement's scans of this table. An append without `reads` read nothing and
    cannot conflict. An overwrite, or an append with `reads`, was planned on the snapshot that the statement reads.
    This is `pin`; without a pin, as in a stream, it is the current snapshot. Rows that others have added after that
    snapshot conflict if the statement would have read or replaced them.
    """
    arguments = request.arguments
    target, mode, pin = WriteTarget.from_json(arguments["target"]), arguments["mode"], arguments.get("pin")
    making = session.staging.staged(target.table)
    if making is not None:
        # No other writer commits to a table that is being created. If a table is being replaced, its old rows are not
        # in the new table.
        mode, pin = APPEND if making.base is None else OVERWRITE, None
    context = target.context(target.load_to_commit(session))
    reports = reports_of(request.parts)
    inside = _inside(arguments, target, context)
    if target.refused_rows_table is not None and is_refused_whole(
        session.load(target.refused_rows_table), _options(request, target)
    ):
        for path in paths_of(reports):
            delete_if_present(context.io, path)
        return {"snapshot_id": None, "already_applied": True}
    with _rows_to_commit(session, request, target, context, reports, inside) as rows:
        return _commit_rows(session, request, target, context, mode, rows, pin)


def _commit_rows(
    session: Session,
    request: Request,
    target: WriteTarget,
    context: WriteContext,
    mode: str,
    rows: _Rows,
    pin: dict[str, Any] | None,
) -> dict[str, Any]:
    arguments, staged = request.arguments, rows.staged
    reads = _reads(arguments, target)
    if target.validation is not None:
        if pin is None:
            raise InvalidArgumentError(
                f"option {ISOLATION_LEVEL} of a write to {'.'.join(target.table)} is only for batches. Nothing was "
                "written. Remove it from the stream."
            )
        pin = pin if reads or target.validation.level == SERIALIZABLE else None
    verb: Verb
    if mode == APPEND:
        verb = partial(_stage_append, target, context, rows)
        pin = pin if reads else None
    elif mode == OVERWRITE_PARTITIONS:
        verb = partial(_stage_partitions, target, context, staged)
    else:
        assert mode == OVERWRITE, mode
        verb = partial(_stage_overwrite, target, context, arguments["predicates"], staged)
    verb = reading(reads, verb, relies=mode == APPEND)
    return _commit(session, request, target, verb, None if pin is None else Pin.from_json(pin), summary=rows.summary)


@method("commit_delta")
def commit_delta(session: Session, request: Request) -> dict[str, Any]:
    """Commit an UPDATE, a MERGE or a DELETE: rows deleted by position, and new rows.

    ST-2: `reads` are the predicates of the statement's scans of the table; None if they are not known. Two changes of
    others conflict: added rows that match `reads` (not at snapshot isolation, SP-20), and deletes of rows in a file
    that this statement updates.

    SP-28: the summary of a MERGE has the counts of Spark and the number of rows that copy-on-write carried.
    """
    arguments = request.arguments
    target = WriteTarget.from_json(arguments["target"])
    context = target.context(target.load_to_commit(session))
    reports = reports_of(request.parts)
    if is_any_refused(reports):
        raise uncovered_rows_error(reports, target.held_against(context), table=".".join(target.table))
    staged, pin = _staged(reports, context), Pin.from_json(arguments["pin"])
    if target.branch != pin.branch:
        raise UnsupportedFeatureError(
            f"{arguments['command']} reads the branch {pin.branch!r} of {'.'.join(pin.table)} and cannot write to "
            f"another branch, {target.branch!r}. Nothing was changed."
        )
    reads = arguments.get("reads")

    def verb(draft: Draft) -> None:
        draft.begin_verb()
        draft.act_as(arguments["command"].lower())
        # This plan has the filters of the statement's own scans, so it contains every file that a row was read from.
        where = _where_read([[]] if reads is None else reads, draft.view.schema)
        if arguments["command"] == "DELETE":
            draft.recorded.add_unknown(where)
        else:
            draft.recorded.add_filters()
        tasks = {task.data_file.file_path: task for task in draft.plan(where)}
        deleted = deleted_positions_of(reports)
        is_rewritten = row_level_mode(draft.context.properties, arguments["command"].lower()) == COPY_ON_WRITE
        draft.delete_positions_in(
            # Key columns are not read to find out that no row remains of a file. A later job removes such files.
            [(tasks[path] if is_rewritten else without_key_deletes(tasks[path]), deleted[path]) for path in deleted],
            written_anew=arguments["command"] != "DELETE",
        )
        if arguments["command"] == "MERGE" and arguments["inserts"]:
            _rely_on_rows_read(draft, tasks.values(), deleted)
        if copies:
            draft.say(f"{_MERGE_COUNT}copied", str(draft.carried_row_count))
        draft.adopt_files(staged, held_against=target.held_properties)

    counts = {f"{_MERGE_COUNT}{name}": str(count) for name, count in arguments.get("merge_counts", {}).items()}
    # Spark does not see which rows copy-on-write rewrites.
    copies = bool(counts) and row_level_mode(session.pinned(pin).properties, "merge") == COPY_ON_WRITE
    target = replace(target, snapshot_properties={**target.snapshot_properties, **counts})
    return _commit(session, request, target, verb, pin)


@method("abort_write")
def abort_write(session: Session, request: Request) -> None:
    """Remove the files of a write that will not be committed."""
    io = WriteTarget.from_json(request.arguments["target"]).load(session).iceberg.io
    for path in paths_of(reports_of(request.parts)):
        delete_if_present(io, path)


def _reads(arguments: Mapping[str, Any], target: WriteTarget) -> Reads:
    """The predicates that the statement read by, if it read the branch that it writes to and they are known."""
    pin = arguments.get("pin")
    return (arguments.get("reads") or []) if pin is not None and pin["branch"] == target.branch else []


def reading(reads: Reads, verb: Verb, *, relies: bool) -> Verb:
    """The operation of a statement that also read the table. The conflict rules need these reads (CP-5). `relies`: the
    statement adds rows because of rows that it read, or because rows were missing (CP-38)."""
    if not reads:
        return verb

    def verb_that_read(draft: Draft) -> None:
        tasks = draft.plan(_where_read(reads, draft.view.schema))
        verb(draft)
        if relies:
            _rely_on_rows_read(draft, tasks, {})

    return verb_that_read


def _rely_on_rows_read(draft: Draft, tasks: Iterable[RowTask], deleted: Mapping[str, PositionSet]) -> None:
    """CP-38: rely on the rows that the scans may have returned and that the statement does not delete itself. They are
    only searched if others have deleted rows in the meantime."""
    context = ReadContext.of(draft.view)

    def find() -> Iterator[tuple[RowTask, PositionSet]]:
        for task in tasks:
            own = deleted.get(task.data_file.file_path, PositionSet.empty())
            yield task, matching_positions(task, context).minus(own)

    draft.rely_on(find, 0)


def _where_read(reads: Reads, schema: Schema) -> BooleanExpression:
    return any_of(pruning_filter(predicates, schema) for predicates in reads)


def _commit(
    session: Session,
    request: Request,
    target: WriteTarget,
    verb: Verb,
    pin: Pin | None,
    *,
    summary: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Run the operation over the pinned snapshot once. Without a pin, run it over the newest snapshot until no commit
    conflicts."""
    options = _options(request, target)
    options = replace(options, snapshot_properties={**(options.snapshot_properties or {}), **(summary or {})})
    iceberg = target.load(session).iceberg if pin is None else handle_of(session.pinned(pin))
    new_draft = partial(Draft, iceberg, target.branch, caches=session.caches, carry=session.carry)
    result = run_verb(verb, new_draft, options, one_shot=pin is not None)
    new_id = result.snapshot_id if result.attempts else None
    snapshot = None if new_id is None else iceberg.metadata.snapshot_by_id(new_id)
    if result.attempts and not target.is_staged:
        after_commit(iceberg, target.branch, executor=session.upkeep_executor)
    return {
        "snapshot_id": result.snapshot_id,
        "already_applied": result.already_applied,
        "summary": None if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties,
    }


def _options(request: Request, target: WriteTarget) -> CommitOptions:
    given = request.arguments["application_id"], request.arguments["batch_id"]
    application_id, batch_id = given if target.batch is None else target.batch
    return CommitOptions(
        application_id=application_id,
        batch_id=batch_id,
        snapshot_properties=target.snapshot_properties,
        is_staged=target.is_staged,
    )


def _staged(reports: list[TaskReport], context: WriteContext) -> StagedFiles:
    files = data_files_of(reports, context)
    return StagedFiles(
        data_files=files,
        row_count=sum(file.record_count for file in files),
        written_bytes=sum(file.file_size_bytes for file in files),
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a write adds, and the prefixes that it replaces."""

    staged: StagedFiles
    prefixes: pa.Table | None
    summary: Mapping[str, str] = field(default_factory=dict)
    """Properties of the snapshot's summary besides those in the options."""
    deleted: tuple[pa.Table, ...] = ()
    """SP-107: the keys and prefixes to delete; no row is added for them."""
    truncates: pa.Table | None = None
    """SP-108: the values of the order columns in events that empty the table."""
    equal: pa.Table | None = None
    """SQ-34: values of some columns; the rows with these values are replaced."""


def _inside(
    arguments: Mapping[str, Any], target: WriteTarget, context: WriteContext
) -> RowsInSpans | RowsMatchFilter | None:
    """RP-19, RP-24: the interval or filter that rows must lie in; None if they may lie anywhere."""
    if target.interval is not None:
        return target.interval.inside(context.schema)
    if arguments["mode"] != OVERWRITE or target.allow_outside:
        return None
    return inside_of(
        still_exact_filter(arguments["predicates"], context.schema, planned=context.schema, subject="an overwrite"),
        context.schema,
    )


@contextmanager
def _rows_to_commit(
    session: Session,
    request: Request,
    target: WriteTarget,
    context: WriteContext,
    reports: list[TaskReport],
    inside: RowsInSpans | RowsMatchFilter | None,
) -> Iterator[_Rows]:
    """The rows to commit. Raises RowsRefusedError if some rows may not be added and the write does not divert them.

    RP-22: diverted rows are staged in the table for refused rows, and published when the block ends. Files that are no
    longer needed are removed when the block ends. If the block fails, the files that were written here are removed.
    """
    staged = _staged(reports, context)
    if target.operation == DELETE:
        yield _Rows(staged, None, deleted=deleted_keys_of(reports, context))
        return
    names = target.replace_prefix
    equal = values_to_replace(reports, target.replace_equal, context.schema)
    prefixes = prefixes_of(reports, names, context.schema) if names else None
    messages = tuple(messages_of(reports, names, context.schema)) if names else ()
    key = key_names(context.schema, context.key_field_ids)
    staged = replace(staged, messages=messages)
    options = _options(request, target)
    table, name = target.load(session), ".".join(target.table)
    refused, outside = is_any_refused(reports), None
    # The files of a batch that was committed before may have been removed.
    is_asked = refused or inside is not None or target.refused_rows_table is not None
    is_applied = is_asked and Draft(table.iceberg, target.branch).is_applied(options)
    if inside is not None and not is_applied:
        outside = rows_outside(inside, staged.data_files, table.view, context)
    if not is_applied:
        refuse_duplicates(reports, key, context.schema, table=name)
    if is_applied or not (refused or outside):
        yield _Rows(staged, prefixes, truncates=truncates_of(reports, names) if names else None, equal=equal)
        left = rows_left_to_publish(table.iceberg, target.branch, options) if is_applied else None
        if left is not None and target.refused_rows_table is not None:
            publish_rows(session, left, options, is_alone=False)
    elif target.refused_rows_table is None and outside is not None and not refused:
        raise outside.error(reports, table=name)
    elif target.refused_rows_table is None:
        raise uncovered_rows_error(reports, target.held_against(context), table=name)
    else:
        others = session.load(target.refused_rows_table)
        held = target.held_against(context)
        diversion = divert(
            others,
            table.view,
            held,
            reports,
            staged,
            prefix=target.replace_prefix,
            outside=outside,
            options=options,
        )
        if prefixes is not None and diversion.spoiled is not None:
            prefixes = prefixes.filter(pa.array(~rows_among(prefixes, diversion.spoiled)))
        written = replace(diversion.staged, messages=_of_files(messages, diversion))
        try:
            yield _Rows(written, prefixes, diversion.refused.summary)
        except CommitStateUnknownError:
            raise
        except BaseException:
            diversion.written_anew.delete_all(context.io)
            raise
        is_alone = not Draft(target.load(session).iceberg, target.branch).is_applied(options)
        publish_rows(session, diversion.refused, options, is_alone=is_alone)
        for path in diversion.unused_paths:
            delete_if_present(context.io, path)


def _of_files(messages: Sequence[StagedMessages], diversion: Diversion) -> tuple[StagedMessages, ...]:
    """The messages, with the files that contain their rows after the diversion."""
    return tuple(
        replace(message, file_paths=tuple(chain(*(diversion.anew.get(path, (path,)) for path in message.file_paths))))
        for message in messages
    )


def _stage_append(target: WriteTarget, context: WriteContext, rows: _Rows, draft: Draft) -> None:
    """Stage an append. CP-37: names of replaced columns refer to the schema that the rows were written in."""
    draft.begin_verb()
    if (rows.prefixes is not None or target.operation) and draft.key_field_ids != target.key_field_ids:
        raise CommitConflictError(
            f"the key of {'.'.join(target.table)} was changed while rows were written that replace others by the "
            "key. Nothing was changed. Run the statement again."
        )
    if target.operation or target.replace_equal:
        refuse_unordered(draft.order.column(), target.operation, target.replace_equal, draft.name)
    adopt = partial(draft.adopt_files, rows.staged, held_against=target.held_properties)
    stage_operation(draft, target, context, rows.staged, adopt, keys=rows.prefixes, truncates=rows.truncates)
    stage_deleted_keys(draft, context, rows.deleted)
    stage_replaced_values(draft, rows.equal, context.schema)
    if not target.operation and rows.prefixes is not None:
        stage_replaced(draft, context, rows.staged, rows.prefixes, order_by=target.order_by, on_stale=target.on_stale)
    if target.interval is not None:
        spans = target.interval.inside(context.schema).spans
        names_by_now(spans.key.names, context.schema, draft.schema)
        if len(spans):
            draft.replace_spans(spans)


def _stage_overwrite(
    target: WriteTarget,
    context: WriteContext,
    predicates: list[dict[str, Any]],
    staged: StagedFiles,
    draft: Draft,
) -> None:
    """Stage an overwrite. Files whose rows all match are removed from the table; other rows are deleted by the cheapest
    exact delete."""
    where = still_exact_filter(predicates, draft.schema, planned=context.schema, subject="an overwrite")
    if target.validation is not None:
        target.validation.check_where(draft, where)
    draft.begin_verb()
    stage_delete(draft, where, mode="scan" if takes_whole_files(draft.view, where, draft.branch) else "auto")
    draft.adopt_files(staged, held_against=target.held_properties)


def _stage_partitions(target: WriteTarget, context: WriteContext, staged: StagedFiles, draft: Draft) -> None:
    defined = draft.context.range_partitions
    overwritten = OverwrittenPartitions.of(context.spec, staged.data_files, defined, draft.name)
    if target.validation is not None:
        target.validation.check_files(draft, overwritten.may_reach)
    draft.begin_verb()
    stage_overwritten_partitions(draft, overwritten)
    draft.adopt_files(staged, held_against=target.held_properties)
