"""`overwrite`: replace the rows that match a filter, or all rows, by new ones."""

from __future__ import annotations

from typing import Any

from pyiceberg.expressions import BooleanExpression

from tableformat.operations.draft import Draft
from tableformat.operations.options import one_of
from tableformat.operations.verbs.delete import stage_delete


def overwrite(
    draft: Draft, *, rows: Any, where: str | BooleanExpression | None = None, on_refused: str = "fail"
) -> None:
    """Stage the delete of what matches, by the cheapest exact way, and the rows, in one step: the rows stay."""
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    draft.begin_verb()
    stage_delete(draft, where, mode="auto")
    draft.add_rows(draft.conformed(rows, on_refused))
