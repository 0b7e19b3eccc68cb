"""Bounds in manifest entries: of the keys in a data file (RD-10), and of the keys that a range delete file deletes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import PrimitiveType, UUIDType

from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import CorruptFileError
from tableformat.keys.encoding import AFTER_MARKER, NULL_MARKER, VALUE_MARKER, encode_column
from tableformat.keys.families import KeyFamily, family_of
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.single_value import MalformedBoundError, encode_bound, uuid_bound
from tableformat.keys.sort_words import number_view
from tableformat.metadata.column_bounds import to_bound, truncate_lower, truncate_upper
from tableformat.metadata.content_file import DataFile, null_count, value_count


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """Two encoded cuts; every key of the file lies between them. Open sides are b"" and FF."""

    lower: bytes
    upper: bytes


def key_bounds(data: DataFile, key: KeyColumns) -> KeyBounds:
    """RD-10: the tightest cuts that the file's counts and bounds prove. Each side ends before the first column that is
    unknown.

    - A column without a null count is unknown: a file written before the column was added reads as null or as a
      default.
    - With nulls, the lower side is null. If all values are null, the upper side is null too.
    - Floats also need a NaN count. Without it both sides are unknown. If it is above 0, NaN is above every bound.
    - UUIDs of a file that may have several row groups are known as far as `uuid_bound` proves.

    Raises CorruptFileError if the bytes of a needed bound are not a value of the column.
    """
    return KeyBounds(_side(data, key, is_upper=False), _side(data, key, is_upper=True) + AFTER_MARKER)


def _side(data: DataFile, key: KeyColumns, *, is_upper: bool) -> bytes:
    """The encoded values of one side, for the leading columns that are known. Bounds of other columns are not read."""
    side = b""
    for field_id, key_type in zip(key.field_ids, key.types, strict=True):
        value = _column_bound(data, field_id, key_type, is_upper=is_upper)
        if value is None:
            break
        side += value
    return side


def _column_bound(data: DataFile, field_id: int, key_type: PrimitiveType, *, is_upper: bool) -> bytes | None:
    """The encoded smallest or largest value of a column; None if it is unknown."""
    nulls = null_count(data, field_id)
    if nulls is None:
        return None
    is_all_null = nulls > 0 and nulls == value_count(data, field_id)
    if is_all_null or (nulls and not is_upper):
        return NULL_MARKER
    if family_of(key_type) is KeyFamily.FLOAT:
        nan_count = (data.nan_value_counts or {}).get(field_id)
        if nan_count is None or (nan_count and is_upper):
            return None
    return _bound(data, field_id, key_type, is_upper=is_upper)


def _bound(data: DataFile, field_id: int, key_type: PrimitiveType, *, is_upper: bool) -> bytes | None:
    stored = ((data.upper_bounds if is_upper else data.lower_bounds) or {}).get(field_id)
    if stored is None:
        return None
    try:
        encoded = encode_bound(stored, key_type, is_upper=is_upper)
    except MalformedBoundError as error:
        side = "upper" if is_upper else "lower"
        raise CorruptFileError(
            data.file_path, f"the {side} bound of field id {field_id} in its manifest entry is {error}."
        ) from error
    if encoded is None or not isinstance(key_type, UUIDType) or len(data.split_offsets or ()) == 1:
        return encoded
    proved = uuid_bound(encoded[len(VALUE_MARKER) :], is_upper=is_upper)
    return None if proved is None else VALUE_MARKER + proved


def entry_bounds(spans: SpanArray) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """FM-15: bounds by field id, in Iceberg's single-value form, of the key values that the spans can delete.

    A column has bounds only if every span binds each column before it to one value (equal in its lower and upper cut):

    - lower: every lower cut binds the column to a value. A cut that leaves it open or binds null includes nulls. Bounds
      cannot express this, so the column has neither bound.
    - upper: every upper cut binds the column to a value. This value is the bound, whether the cut is before or after
      it.
    - A float column has both bounds or none, and none with NaN: an open upper side includes NaN, which bounds exclude.

    So a file whose column has no value within the bounds, apart from nulls and NaN, has no row that the spans delete.
    Strings and binaries are truncated as in data files.
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
    """The smallest or largest value that the cuts bind the column to; None if one of them binds no value."""
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
