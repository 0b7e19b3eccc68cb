"""SP-106: stages the effects of a write's rows on stored rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_ext.service.registry import Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.writes.row_operation import CHANGES, INSERT_ERROR, INSERT_IGNORE, UPSERT
from spark_ext.service.writes.task_reports import TaskReport, typed_values
from spark_ext.service.writes.write_options import WriteOptions
from spark_ext.service.writes.write_plan import WriteTarget
from tableformat.errors import CommitConflictError
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.operations.row_lookup.settled_messages import drop_messages, known_keys, settle_messages
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete import stage_delete
from tableformat.operations.verbs.delete_prefix import stage_prefixes
from tableformat.operations.verbs.stale_messages import fresh_prefixes
from tableformat.operations.verbs.truncates import refuse_ordered_truncate
from tableformat.write.context import WriteContext
from tableformat.write.rows.distinct import distinct_rows
from tableformat.write.staged import StagedFiles


@method("check_operation")
def check_operation(session: Session, request: Request) -> dict[str, Any]:
    """The operation in the options of a write, in the form of a plan. Invalid options raise an error here, before Spark
    compares the columns of the rows with the columns of the table."""
    table = session.pinned(Pin.from_json(request.arguments["pin"]))
    options = WriteOptions.parse(request.arguments["options"], table=table.name)
    schema = table.metadata.schema()
    key = key_names(schema, key_field_ids(schema, table.metadata.properties))
    options.operation.check(key, options.order_by, table.name)
    return options.operation.plan()


def stage_operation(
    draft: Draft,
    target: WriteTarget,
    context: WriteContext,
    staged: StagedFiles,
    adopt: Callable[[], None],
    *,
    keys: pa.Table | None,
    truncates: pa.Table | None,
) -> None:
    """SP-106: adopt the rows, settle which of them stay, and stage the delete of stored rows.

    `keys`: the keys of the rows and of delete events. `truncates`: the values of the order columns in events that empty
    the table.
    """
    operation = target.operation
    messages, files = staged.messages, staged.data_files
    if operation in (INSERT_IGNORE, INSERT_ERROR):
        known = known_keys(draft, messages, fail=operation == INSERT_ERROR) if messages else None
        adopt()
        if known is not None and known.any():
            drop_messages(draft, context, messages, files, known)
        return
    adopt()
    settle_messages(draft, context, messages, files, after=truncates)
    if operation not in (UPSERT, CHANGES):
        return
    _refuse_new_columns(draft, context)
    if truncates is not None:
        refuse_ordered_truncate(draft)
        stage_delete(draft, None, mode="auto")
    keys = fresh_prefixes(draft, context, staged, keys, order_by=target.order_by, on_stale=target.on_stale)
    if keys is not None and keys.num_rows:
        draft.add_keys(keys.rename_columns(list(draft.key_names)))


def _refuse_new_columns(draft: Draft, context: WriteContext) -> None:
    """CP-27: the rows replace whole rows. Raises CommitConflictError if columns were added after the write was planned,
    since the rows lack these columns."""
    draft.replaces_whole_rows()
    known = {field.field_id for field in context.schema.fields}
    added = [field.name for field in draft.schema.fields if field.field_id not in known]
    if added:
        raise CommitConflictError(
            f"the columns {', '.join(added)} were added to {draft.name} while rows were written that replace whole "
            "rows, so values in them would be lost. Nothing was changed. Run the statement again with these columns; "
            "a stream must be restarted."
        )


def deleted_keys_of(reports: Sequence[TaskReport], context: WriteContext) -> tuple[pa.Table, ...]:
    """SP-107: the distinct keys in the rows of a delete, in the types of the table's schema: one table for each number
    of leading columns that have a value."""
    streams = [report.prefixes for report in reports if report.prefixes is not None]
    tables = [pa.ipc.open_stream(stream).read_all() for stream in streams]
    if not tables:
        return ()
    keys = distinct_rows(pa.concat_tables(tables))
    lengths = np.sum([np.asarray(pc.is_valid(column)) for column in keys.columns], axis=0)
    return tuple(
        typed_values(keys.select(range(length)).filter(pa.array(lengths == length)), context.schema)
        for length in np.unique(lengths)
    )


def stage_deleted_keys(draft: Draft, context: WriteContext, deleted: Sequence[pa.Table]) -> None:
    """SP-107: stage the deletes of whole keys, as `delete_rows` does, and of prefixes, as `delete_prefix` does."""
    for keys in deleted:
        if keys.num_columns == len(context.key_field_ids):
            draft.add_keys(keys.rename_columns(list(draft.key_names)))
        else:
            stage_prefixes(draft, keys, named_in=context.schema)
