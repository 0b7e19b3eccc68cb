"""`delete_range`: delete a half-open range of values of some columns, without reading rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyiceberg.schema import Schema

from tableformat.deletes.spans.spans import span_of_bounds
from tableformat.errors import InvalidArgumentError, InvalidKeyError, UnknownColumnError
from tableformat.keys.key_columns import KeyColumns
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.covered_rows import delete_covered
from tableformat.operations.staging.blind_deletes import refuse_forbidden
from tableformat.operations.staging.draft import Draft

MODES: Final = ("auto", "range", "scan")


def delete_range(
    draft: Draft,
    *,
    lower: Sequence[Any] | None,
    upper: Sequence[Any] | None,
    on: Sequence[str] | None = None,
    mode: str = "auto",
    everything: bool = False,
) -> None:
    """Stage the span from before `lower` to before `upper` over the columns `on`, by default the key. A span of all
    rows must be requested explicitly (`everything`)."""
    one_of(mode, MODES, option="mode")
    if mode == "range":
        refuse_forbidden(mode, draft.blind_deletes, table=draft.name)
    check_everything_is_meant(lower, upper, everything=everything, consequence="every row would be deleted")
    span = span_of_bounds(range_columns(draft, on), _bound(lower, option="lower"), _bound(upper, option="upper"))
    draft.begin_verb()
    if len(span) == 0:
        return
    if mode == "scan":
        delete_covered(draft, span)
    else:
        draft.add_spans(span)


def check_everything_is_meant(lower: Any, upper: Any, *, everything: bool, consequence: str) -> None:
    """Raise InvalidArgumentError for a range without bounds and without `everything`, and for `everything` with bounds.
    A bound that the caller's program lost must not empty the table."""
    is_unbounded = lower is None and upper is None
    if is_unbounded and not everything:
        raise InvalidArgumentError(
            f"pass lower=, upper= or both; without them, {consequence}. Nothing was changed. If you intend this, "
            "pass everything=True."
        )
    if everything and not is_unbounded:
        raise InvalidArgumentError("everything=True cannot be combined with lower= or upper=. Nothing was changed.")


def range_columns(draft: Draft, on: Sequence[str] | None) -> KeyColumns:
    """The ordered columns of the range: any primitive top-level columns, including nullable and floating point ones."""
    if on is None:
        return KeyColumns.of(draft.schema, draft.key_field_ids)
    if isinstance(on, str):
        raise InvalidArgumentError(f"on must be a list of columns: on=[{on!r}].")
    return named_columns(draft.schema, on)


def named_columns(schema: Schema, on: Sequence[str]) -> KeyColumns:
    """The ordered columns with these names."""
    names = [field.name for field in schema.fields]
    for name in on:
        if name not in names:
            raise UnknownColumnError(name, names, where="on=")
    if not on:
        raise InvalidKeyError("on=[] is empty. Pass the columns of the range, the most significant first.")
    return KeyColumns.of(schema, [schema.find_field(name).field_id for name in on])


def _bound(values: Sequence[Any] | None, *, option: str) -> tuple[Any, ...] | None:
    if values is None:
        return None
    if isinstance(values, tuple | list):
        return tuple(values)
    raise InvalidArgumentError(f"{option} must be a tuple of leading values: {option}=({values!r},).")
