"""Explains the form of a delete and its reason. Nothing is staged, and no data file is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyiceberg.expressions import BooleanExpression

from tableformat.filters.bound_filter import bind_filter
from tableformat.markup.figures import counted, size
from tableformat.merge_on_read.task import RowTask
from tableformat.operations.row_lookup.key_condition import KeyCondition, key_conditions
from tableformat.operations.row_lookup.whole_files import whole_files
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.result import DeleteEstimate
from tableformat.operations.verbs.delete import BlindForm, blind_form
from tableformat.properties import BLIND_DELETES, BLIND_DELETES_DEFAULT, PREFIX_ENCODING


@dataclass(frozen=True, slots=True)
class DeletePart:
    """One kind of change that a delete makes."""

    form: str
    """"whole files", "range delete", "equality delete", "nothing", "reaches at most"."""
    why: str


def explain_blind_delete(draft: Draft, where: BooleanExpression) -> list[DeletePart]:
    """The changes that `delete` stages for a filter that a blind delete can express; empty for any other filter. Reads
    only manifests."""
    conditions = key_conditions(bind_filter(where, draft.schema))
    if conditions is None or not all(each.points or each.interval or draft.has_key for each in conditions):
        return []
    if not conditions:
        return [DeletePart("nothing", "no row can match the condition")]
    files = whole_files(draft, where, conditions)
    if files:
        return [of_whole_files(files)]
    return [*dict.fromkeys(_blind_parts(draft, conditions)), at_most(draft.look(where))]


def at_most(files: Sequence[RowTask]) -> DeletePart:
    """SQ-45: the upper limit of the rows that a delete affects, as stated by `dry_run="metadata"`."""
    found = DeleteEstimate.of(task.data_file for task in files)
    return DeletePart(
        "reaches at most",
        f"{counted(found.data_files_count, 'data file')} of {size(found.data_bytes)} with "
        f"{counted(found.row_count_max, 'row')}",
    )


def of_whole_files(files: Sequence[RowTask]) -> DeletePart:
    """The removal of data files whose rows all match."""
    if not files:
        return DeletePart("nothing", "no data file can contain a matching row")
    rows = sum(each.data_file.record_count for each in files)
    return DeletePart(
        "whole files",
        f"partition values or bounds show that all rows of these files match: {len(files)} with {rows} rows are "
        "removed without being opened",
    )


def explain_delete_of_keys(draft: Draft, columns: Sequence[str]) -> DeletePart:
    """The form of a delete of keys whose columns lead the key."""
    if draft.blind_deletes != BLIND_DELETES_DEFAULT:
        return _values_part(draft, ", ".join(columns), BlindForm.KEYS)
    is_equality = draft.prefix_encoding == "equality"
    return _values_part(draft, ", ".join(columns), BlindForm.ENCODED_KEYS if is_equality else BlindForm.RANGE)


def _blind_parts(draft: Draft, conditions: Sequence[KeyCondition]) -> Iterator[DeletePart]:
    key = draft.key_field_ids if draft.has_key else ()
    for condition in conditions:
        form = blind_form(condition, key, draft.prefix_encoding)
        if form is BlindForm.RANGE and condition.interval is not None and draft.blind_deletes == BLIND_DELETES_DEFAULT:
            yield DeletePart("range delete", f"{condition.interval.column.name} is limited to an interval")
        else:
            yield _values_part(draft, ", ".join(column.name for column, _ in condition.points), form)


def _values_part(draft: Draft, pinned: str, form: BlindForm) -> DeletePart:
    """The form of a delete of columns pinned to values, or of all rows without such columns."""
    named = f"the key ({', '.join(draft.key_names)})" if draft.has_key else "a key, which the table does not have"
    if draft.blind_deletes != BLIND_DELETES_DEFAULT:
        return DeletePart("equality delete", f"{pinned} has values, and {BLIND_DELETES} is {draft.blind_deletes!r}")
    match form:
        case BlindForm.KEYS:
            return DeletePart("equality delete", f"{pinned} has values that do not lead {named}")
        case BlindForm.ENCODED_KEYS:
            return DeletePart("equality delete", f"{pinned} leads {named}, and {PREFIX_ENCODING} is 'equality'")
        case BlindForm.RANGE:
            return DeletePart("range delete", f"{pinned} leads {named}" if pinned else f"it covers all of {named}")
