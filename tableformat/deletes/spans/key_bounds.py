"""Where the keys of a data file can lie, by what its manifest entry says of the key columns (RD-10)."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.types import PrimitiveType

from tableformat.errors import CorruptFileError
from tableformat.keys.encoding import AFTER_MARKER, NULL_MARKER
from tableformat.keys.families import KeyFamily, family_of
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.single_value import MalformedBoundError, encode_bound
from tableformat.metadata.content_file import DataFile


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """Two encoded cuts; every key of the file lies between them. Open sides are b"" and FF."""

    lower: bytes
    upper: bytes


def key_bounds(data: DataFile, key: KeyColumns) -> KeyBounds:
    """RD-10: the tightest cuts that the file's counts and bounds prove; a side stops at the first column it knows
    nothing of.

    A column is known by its null count (a file written before the column was added has none: it may read as null or as
    a default). With nulls the lower side is null; all null, the upper side too. Floats also need a NaN count: unknown,
    neither side is known, above 0, NaN tops every bound. CorruptFileError when a bound's bytes are no value of the
    column.
    """
    lower, upper = b"", b""
    lower_is_open = upper_is_open = False
    for field_id, key_type in zip(key.field_ids, key.types, strict=True):
        column_lower, column_upper = _column_bounds(data, field_id, key_type)
        lower_is_open = lower_is_open or column_lower is None
        upper_is_open = upper_is_open or column_upper is None
        if lower_is_open and upper_is_open:
            break
        lower += b"" if lower_is_open or column_lower is None else column_lower
        upper += b"" if upper_is_open or column_upper is None else column_upper
    return KeyBounds(lower, upper + AFTER_MARKER)


def _column_bounds(data: DataFile, field_id: int, key_type: PrimitiveType) -> tuple[bytes | None, bytes | None]:
    """Encoded smallest and largest value of a column, None where unknown."""
    null_count = (data.null_value_counts or {}).get(field_id)
    if null_count is None:
        return None, None
    if null_count > 0 and null_count == (data.value_counts or {}).get(field_id):
        return NULL_MARKER, NULL_MARKER
    nan_count: int | None = 0
    if family_of(key_type) is KeyFamily.FLOAT:
        nan_count = (data.nan_value_counts or {}).get(field_id)
        if nan_count is None:
            return (NULL_MARKER if null_count else None), None
    lower = NULL_MARKER if null_count else _bound(data, field_id, key_type, is_upper=False)
    return lower, None if nan_count else _bound(data, field_id, key_type, is_upper=True)


def _bound(data: DataFile, field_id: int, key_type: PrimitiveType, *, is_upper: bool) -> bytes | None:
    stored = ((data.upper_bounds if is_upper else data.lower_bounds) or {}).get(field_id)
    if stored is None:
        return None
    try:
        return encode_bound(stored, key_type, is_upper=is_upper)
    except MalformedBoundError as error:
        side = "upper" if is_upper else "lower"
        raise CorruptFileError(
            data.file_path, f"the {side} bound of field id {field_id} in its manifest entry is {error}."
        ) from error
