"""Deletes that match whole data files: the files are removed from the table, without a delete file (RP-17)."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.expressions import BooleanExpression

from tableformat.deletes.spans.coverage import Coverage, classify
from tableformat.merge_on_read.task import RowTask
from tableformat.operations.row_lookup.key_condition import KeyCondition, spans_of
from tableformat.operations.staging.draft import Draft


def drop_whole_files(draft: Draft, where: BooleanExpression, conditions: Sequence[KeyCondition]) -> bool:
    """RP-17: stage the removal of the data files that may hold a matching row, if their bounds show that every row of
    them matches. Otherwise returns False and stages nothing. Reads manifests; no data file is opened.

    `conditions` together match exactly the rows of `where`.
    """
    tasks = whole_files(draft, where, conditions)
    return bool(tasks) and draft.remove_files(tasks, where)


def whole_files(draft: Draft, where: BooleanExpression, conditions: Sequence[KeyCondition]) -> Sequence[RowTask]:
    """RP-17: the data files that may hold a matching row, if their bounds show that every row of them matches;
    otherwise none. None for a published branch, because its target may have such rows, too."""
    if draft.is_published:
        return ()
    tasks = draft.look(where)
    return tasks if all(_matches_whole(draft, task, conditions) for task in tasks) else ()


def _matches_whole(draft: Draft, task: RowTask, conditions: Sequence[KeyCondition]) -> bool:
    key = draft.key_field_ids if draft.has_key else ()
    for condition in conditions:
        if not condition.points and condition.interval is None:
            return True
        spans = spans_of(condition, draft.schema, key).with_sequence_number(draft.next_sequence_number)
        coverage, _ = classify(spans, task.data_file)
        if coverage is Coverage.COVERED:
            return True
    return False
