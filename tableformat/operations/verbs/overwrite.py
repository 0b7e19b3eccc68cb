"""`overwrite`: replace the rows that match a filter, or all rows, with new ones."""

from __future__ import annotations

from typing import Any

from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema

from tableformat.filters.bound_filter import TRUE, bind_filter
from tableformat.filters.filter_text import filter_text
from tableformat.filters.predicate import Where, parse_where
from tableformat.operations.options import one_of
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete import stage_delete
from tableformat.write.rows.replaced_range_checks import RowsMatchFilter


def overwrite(
    draft: Draft,
    *,
    rows: Any,
    where: Where | None = None,
    allow_outside: bool = False,
    on_refused: str = "fail",
) -> None:
    """Stage the delete of the matching rows, in the cheapest exact form, and the new rows, in one step: the delete does
    not reach the new rows.

    A row that does not match is rejected unless `allow_outside` is set (RP-24). All matching rows are deleted, even if
    some new rows are diverted.
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    stage_overwrite(draft, rows, where, allow_outside=allow_outside, on_refused=on_refused)


def stage_overwrite(
    draft: Draft, rows: Any, where: Where | None, *, allow_outside: bool = False, on_refused: str | None = None
) -> None:
    """`overwrite`; `on_refused` is None in operations without this option."""
    draft.begin_verb()
    stage_delete(draft, where, mode="auto")
    test = None if allow_outside else inside_of(parse_where(where, draft.schema), draft.schema)
    draft.add_rows(draft.conformed(rows, on_refused, tests=() if test is None else (test,)))


def inside_of(where: BooleanExpression, schema: Schema) -> RowsMatchFilter | None:
    """RP-24: the condition that new rows must match; None if every row matches."""
    bound = bind_filter(where, schema)
    return None if bound is TRUE else RowsMatchFilter(bound, f"the overwritten rows, {filter_text(where)}")
