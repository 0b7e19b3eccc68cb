"""`delete`: delete the rows that match a filter."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from tableformat.errors import InvalidPredicateError
from tableformat.filters.bound_filter import bind_filter
from tableformat.filters.filter_text import filter_text
from tableformat.filters.predicate import Where, parse_where
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.covered_rows import delete_matching
from tableformat.operations.row_lookup.key_condition import KeyCondition, key_conditions, keys_of, leads_key, spans_of
from tableformat.operations.row_lookup.whole_files import drop_whole_files
from tableformat.operations.staging.blind_deletes import refuse_forbidden
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete_prefix import check_others_read_it
from tableformat.properties import BLIND_DELETES_DEFAULT, BLIND_OFF

_WHOLE_FILE_ATTEMPTS: Final = 2
"""After this many conflicts, a delete is written blind, so that it succeeds despite continuous concurrent writers."""
MODES: Final = ("auto", "range", "equality", "scan")


def delete(draft: Draft, *, where: Where, mode: str = "auto") -> None:
    """Stage the delete of the matching rows.

    Mode "auto" uses the first of these forms that is possible:

    - Remove whole data files, if every row matches in each file with a possible match (RP-17).
    - A blind delete, if the filter pins columns to values and limits at most one other column to an interval, or is an
      OR of such filters. It is a range delete if these columns lead the key or there is an interval, otherwise an
      equality delete.
    - Read the table and delete rows by position.
    """
    one_of(mode, MODES, option="mode")
    if mode in ("range", "equality"):
        refuse_forbidden(mode, draft.blind_deletes, table=draft.name)
    if where is None:
        raise InvalidPredicateError("delete needs a filter; delete(where='true') deletes every row.")
    draft.begin_verb()
    draft.act_as("delete")
    stage_delete(draft, where, mode=mode, whole_files=mode == "auto" and 0 < draft.attempt <= _WHOLE_FILE_ATTEMPTS)


def stage_delete(draft: Draft, where: Where | None, *, mode: str, whole_files: bool = False) -> None:
    """Stage the delete as part of the current operation of the draft; without a filter, it deletes every row.
    `whole_files` allows the removal of data files whose rows all match (RP-17)."""
    expression = parse_where(where, draft.schema)
    draft.deletes_where(expression)
    conditions = None if mode == "scan" else key_conditions(bind_filter(expression, draft.schema))
    if conditions and whole_files and drop_whole_files(draft, expression, conditions):
        draft.recorded.add_filters(expression)
        return
    # SP-22: if the table does not allow a kind of blind delete, its rows are found by the filter.
    allowed = mode if mode != "auto" or draft.blind_deletes == BLIND_DELETES_DEFAULT else draft.blind_deletes
    is_blind = conditions is not None and allowed != BLIND_OFF
    if is_blind and all(_is_expressible(draft, condition, allowed) for condition in conditions or ()):
        for condition in conditions or ():
            _stage_blind(draft, condition, allowed)
        return
    if mode in ("range", "equality"):
        raise InvalidPredicateError(
            f"{filter_text(expression)} does not support mode={mode!r}: {_REASONS[mode]} Use mode='auto' or "
            "mode='scan'."
        )
    delete_matching(draft, expression)
    draft.recorded.add_filters(expression)


_REASONS: Final = {
    "range": (
        "it must compare columns with values, and limit at most one more column to an interval; floating point "
        "columns are not allowed."
    ),
    "equality": "it must compare each of its columns with values; floating point columns are not allowed.",
}


class BlindForm(Enum):
    """The form of a blind delete if the caller does not choose one."""

    RANGE = "range"
    KEYS = "keys"
    """An equality delete, because the pinned columns do not lead the key."""
    ENCODED_KEYS = "encoded keys"
    """An equality delete, because the table property requires it although the columns lead the key."""


def blind_form(condition: KeyCondition, key: Sequence[int], prefix_encoding: str) -> BlindForm:
    """A range delete for an interval and for values that lead the key, an equality delete for other values."""
    if condition.interval is not None or not condition.points:
        return BlindForm.RANGE
    if not leads_key(condition, key):
        return BlindForm.KEYS
    return BlindForm.ENCODED_KEYS if prefix_encoding == "equality" else BlindForm.RANGE


def _is_expressible(draft: Draft, condition: KeyCondition, mode: str) -> bool:
    if mode == "equality":
        return condition.interval is None and bool(condition.points)
    # Without columns, the delete covers every row. With a key, this is a span of the key; without a key, a span is
    # impossible.
    return bool(condition.points or condition.interval or draft.has_key)


def _stage_blind(draft: Draft, condition: KeyCondition, mode: str) -> None:
    key = draft.key_field_ids if draft.has_key else ()
    form = blind_form(condition, key, draft.prefix_encoding)
    if mode == "equality" or (mode == "auto" and form is not BlindForm.RANGE):
        keys = keys_of(condition)
        if form is BlindForm.ENCODED_KEYS:
            check_others_read_it(draft, keys)
        draft.add_keys(keys)
    else:
        draft.add_spans(spans_of(condition, draft.schema, key))
