"""Column bounds of a range delete file in its manifest entry: what a planner may prune the file by."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import PrimitiveType

from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.encoding import encode_column
from tableformat.keys.families import KeyFamily, family_of
from tableformat.keys.sort_words import number_view
from tableformat.metadata.column_bounds import to_bound, truncate_lower, truncate_upper


def entry_bounds(spans: SpanArray) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Lower and upper bounds by field id, in Iceberg's single-value form, of the key values that the spans can delete.

    A column is bounded only where every span binds all columns before it to one value (equal in its lower and upper
    cut):

    - lower: every lower cut binds the column to a value. One that leaves it open or binds null lets nulls in, which
    bounds
      cannot express: then neither side is given.
    - upper: every upper cut binds the column to a value. The value itself is the bound, on whichever side of it the
    cut lies.
    - a float column has both bounds or none, and none with NaN: an open upper side takes NaN in, which bounds leave
    out.

    So a file whose column has no value within the bounds, nulls and NaN disregarded, has no row that the spans delete.
    Text and binary are truncated as in data files.
    """
    lower_bounds: dict[int, bytes] = {}
    upper_bounds: dict[int, bytes] = {}
    if len(spans) == 0:
        return lower_bounds, upper_bounds
    for position, (field_id, key_type) in enumerate(zip(spans.key.field_ids, spans.key.types, strict=True)):
        lower, upper = spans.lower.columns[position], spans.upper.columns[position]
        encoded_lower = encode_column(lower, key_type)
        encoded_upper = encoded_lower if upper is lower else encode_column(upper, key_type)
        lower_bound = _extreme(spans.lower, position, key_type, encoded_lower, largest=False)
        upper_bound = _extreme(spans.upper, position, key_type, encoded_upper, largest=True)
        is_float = family_of(key_type) is KeyFamily.FLOAT
        if lower_bound is not None and not (is_float and upper_bound is None):
            lower_bounds[field_id] = lower_bound
            if upper_bound is not None:
                upper_bounds[field_id] = upper_bound
        if not _all_pinned(spans, position, encoded_lower, encoded_upper):
            break
    return lower_bounds, upper_bounds


def _extreme(
    cuts: CutArray, position: int, key_type: PrimitiveType, encoded: pa.LargeBinaryArray, *, largest: bool
) -> bytes | None:
    """The smallest or largest value that the cuts bind the column to; None when one of them binds no value."""
    column = cuts.columns[position]
    if (cuts.depth <= position).any() or column.null_count:
        return None
    if family_of(key_type) is KeyFamily.FLOAT and pc.any(pc.is_nan(column)).as_py():
        return None
    best = pc.max(encoded) if largest else pc.min(encoded)
    return _single_value(column, pc.index(encoded, best).as_py(), key_type, is_upper=largest)


def _single_value(column: pa.Array, index: int, key_type: PrimitiveType, *, is_upper: bool) -> bytes | None:
    family = family_of(key_type)
    value: Any = column[index].as_py() if family is not KeyFamily.INTEGER else int(number_view(column)[index])
    if family is KeyFamily.FLOAT and value == 0.0:
        value = 0.0 if is_upper else -0.0
    if family is KeyFamily.VARIABLE_BYTES:
        value = truncate_upper(value) if is_upper else truncate_lower(value)
    return None if value is None else to_bound(value, key_type)


def _all_pinned(spans: SpanArray, position: int, lower: pa.LargeBinaryArray, upper: pa.LargeBinaryArray) -> bool:
    """Whether both cuts of every span bind the column, to the same value or both to null."""
    both_bind: npt.NDArray[np.bool_] = (spans.lower.depth > position) & (spans.upper.depth > position)
    return bool(both_bind.all() and pc.all(pc.equal(lower, upper)).as_py())
