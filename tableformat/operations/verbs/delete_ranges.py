"""`delete_ranges`: delete many half-open ranges in one snapshot, without reading rows (CP-86)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.keys.arrow_columns import as_key_array
from tableformat.keys.families import arrow_type_of
from tableformat.keys.key_columns import KeyColumns
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.covered_rows import delete_covered
from tableformat.operations.staging.blind_deletes import refuse_forbidden
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete_range import MODES, named_columns
from tableformat.write.rows.rows import as_reader

_LOWER: Final = "lower_"
_UPPER: Final = "upper_"


def delete_ranges(draft: Draft, *, ranges: Any, mode: str = "auto") -> None:
    """Stage one range delete of all ranges; with "scan", the delete of the rows found in them."""
    one_of(mode, MODES, option="mode")
    if mode == "range":
        refuse_forbidden(mode, draft.blind_deletes, table=draft.name)
    spans = spans_of_ranges(draft, as_reader(ranges, what="ranges").read_all())
    draft.begin_verb()
    if len(spans) == 0:
        return
    if mode == "scan":
        delete_covered(draft, spans)
    else:
        draft.add_spans(spans)


def spans_of_ranges(draft: Draft, ranges: pa.Table) -> SpanArray:
    """CP-86: the union of the ranges. Raises InvalidArgumentError for a row without a bound, with a value after a null,
    or with a lower bound above its upper bound. Raises UnknownColumnError for a column that the table lacks."""
    key = named_columns(draft.schema, _columns(draft, ranges.column_names))
    lower = _cuts(ranges, key, _LOWER)
    upper = _cuts(ranges, key, _UPPER)
    _refuse_rows(ranges, (lower.depth == 0) & (upper.depth == 0), "has no bound, so every row would be deleted")
    above = np.asarray(pc.greater(lower.encoded, upper.encoded), np.bool_)
    _refuse_rows(ranges, above, "has a lower bound above its upper bound")
    filled = np.flatnonzero(np.asarray(pc.less(lower.encoded, upper.encoded), np.bool_))
    return sort_and_merge(SpanArray(key, lower, upper, None).take(filled))


def _columns(draft: Draft, names: list[str]) -> list[str]:
    """The columns of the ranges, in the order of the table of ranges."""
    if len(set(names)) < len(names) or not names:
        raise InvalidArgumentError(
            f"ranges has the columns {names}, but each bound must be one column. Nothing was changed."
        )
    found: dict[str, None] = {}
    known = [field.name for field in draft.schema.fields]
    for name in names:
        if not name.startswith((_LOWER, _UPPER)):
            raise InvalidArgumentError(
                f"ranges has a column {name!r}, but its columns must be bounds with names lower_<column> and "
                f"upper_<column>, such as {_LOWER}{known[0]} and {_UPPER}{known[0]}. Nothing was changed."
            )
        column = name[len(_LOWER) :]
        if column not in known:
            raise UnknownColumnError(column, known, where=f"the column {name!r} of ranges")
        found[column] = None
    return list(found)


def _cuts(ranges: pa.Table, key: KeyColumns, side: str) -> CutArray:
    """The cuts of one side. Leading values bind columns. From the first null or missing column on, the range is open
    among the rows with these values."""
    columns, bound = [], []
    for name, key_type in zip(key.names, key.types, strict=True):
        if f"{side}{name}" in ranges.column_names:
            values = as_key_array(ranges.column(f"{side}{name}"), key_type, name=f"{side}{name}")
        else:
            values = pa.nulls(ranges.num_rows, arrow_type_of(key_type))
        columns.append(values)
        bound.append(np.asarray(values.is_valid()))
    is_bound = np.stack(bound, axis=1)
    leads = np.logical_and.accumulate(is_bound, axis=1)
    _refuse_rows(ranges, (leads != is_bound).any(axis=1), f"has a value after a null in its {side}columns")
    depth = leads.sum(axis=1).astype(np.int8)
    after = (depth < len(key)) if side == _UPPER else np.zeros(len(depth), np.bool_)
    return CutArray(key, tuple(columns), depth, after)


def _refuse_rows(ranges: pa.Table, refused: np.ndarray[Any, np.dtype[np.bool_]], why: str) -> None:
    if refused.any():
        index = int(np.flatnonzero(refused)[0])
        raise InvalidArgumentError(
            f"row {index} of ranges, {ranges.slice(index, 1).to_pylist()[0]}, {why}. Nothing was changed."
        )
