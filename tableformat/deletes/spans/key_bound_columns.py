"""RD-10: the key bounds of many data files at once, from columns of their metrics: `bounds.key_bounds`, for arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import BooleanType, PrimitiveType, UUIDType

from tableformat.deletes.spans.bounds import key_bounds
from tableformat.filters.bound_columns import bound_column
from tableformat.keys.encoding import AFTER_MARKER, NULL_MARKER, VALUE_MARKER, encode_column, join_pieces
from tableformat.keys.families import KeyFamily, family_of, fixed_width_bytes
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.columns.data_columns import DataColumns
from tableformat.metadata.columns.data_file_rows import data_files

Flags = npt.NDArray[np.bool_]

_EMPTY = pa.scalar(b"", pa.large_binary())
_AFTER = pa.scalar(AFTER_MARKER, pa.large_binary())
_NULL = pa.scalar(NULL_MARKER, pa.large_binary())
_VALUE = pa.scalar(VALUE_MARKER, pa.large_binary())


@dataclass(frozen=True, slots=True, eq=False)
class KeyBoundColumns:
    """The `KeyBounds` of n files."""

    lower: pa.LargeBinaryArray
    upper: pa.LargeBinaryArray


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One side of the bounds of one key column, encoded."""

    pieces: pa.LargeBinaryArray
    is_known: Flags
    is_odd: Flags


def key_bound_columns(files: DataColumns, key: KeyColumns) -> KeyBoundColumns:
    """RD-10: for each file, the bounds that `key_bounds` proves. Raises CorruptFileError if the bytes of a bound are
    not a value of the column."""
    count = len(files)
    is_odd = np.zeros(count, np.bool_)
    is_lower_open, is_upper_open = is_odd.copy(), is_odd.copy()
    lowers, uppers = [], []
    for field_id, key_type in zip(key.field_ids, key.types, strict=True):
        lower, upper = _column(files, field_id, key_type)
        is_odd |= (lower.is_odd & ~is_lower_open) | (upper.is_odd & ~is_upper_open)
        is_lower_open |= ~lower.is_known
        is_upper_open |= ~upper.is_known
        lowers.append(pc.if_else(pa.array(~is_lower_open), lower.pieces, _EMPTY))
        uppers.append(pc.if_else(pa.array(~is_upper_open), upper.pieces, _EMPTY))
    bounds = KeyBoundColumns(join_pieces(lowers), join_pieces([*uppers, _AFTER]))
    return _with_odd(bounds, files, key, np.flatnonzero(is_odd)) if is_odd.any() else bounds


def _with_odd(
    bounds: KeyBoundColumns, files: DataColumns, key: KeyColumns, rows: npt.NDArray[np.int64]
) -> KeyBoundColumns:
    """Compute one by one the files whose bounds the arrays cannot hold: invalid bounds, and dates beyond all
    timestamps."""
    found = [key_bounds(data, key) for data in data_files(files, rows)]
    mask = np.zeros(len(files), np.bool_)
    mask[rows] = True
    lower = pa.array([each.lower for each in found], pa.large_binary())
    upper = pa.array([each.upper for each in found], pa.large_binary())
    return KeyBoundColumns(
        pc.replace_with_mask(bounds.lower, pa.array(mask), lower),
        pc.replace_with_mask(bounds.upper, pa.array(mask), upper),
    )


def _column(files: DataColumns, field_id: int, key_type: PrimitiveType) -> tuple[_Side, _Side]:
    nulls, values = files.null_counts(field_id), files.value_counts(field_id)
    null_count, value_count = (np.asarray(pc.fill_null(metric.values, 0)) for metric in (nulls, values))
    has_nulls = nulls.is_known & (null_count > 0)
    is_all_null = has_nulls & values.is_known & (null_count == value_count)
    lower, upper = (
        _encoded(files.metric(f"{side}_bounds", field_id).values, key_type, is_upper=side == "upper")
        for side in ("lower", "upper")
    )
    if isinstance(key_type, UUIDType):
        lower = _as_far_as_proved(lower, files, field_id, is_upper=False)
        upper = _as_far_as_proved(upper, files, field_id, is_upper=True)
    knows_lower, knows_upper = nulls.is_known & (lower.is_known | has_nulls), nulls.is_known & upper.is_known
    looks_at_lower, looks_at_upper = nulls.is_known & ~has_nulls, nulls.is_known & ~is_all_null
    if family_of(key_type) is KeyFamily.FLOAT:
        nans = files.metric("nan_value_counts", field_id)
        has_no_nan = nans.is_known & (np.asarray(pc.fill_null(nans.values, 0)) == 0)
        knows_lower &= nans.is_known | has_nulls
        knows_upper &= has_no_nan
        looks_at_lower &= nans.is_known
        looks_at_upper &= has_no_nan
    return (
        _Side(pc.if_else(pa.array(has_nulls), _NULL, lower.pieces), knows_lower, lower.is_odd & looks_at_lower),
        _Side(
            pc.if_else(pa.array(is_all_null), _NULL, upper.pieces),
            knows_upper | is_all_null,
            upper.is_odd & looks_at_upper,
        ),
    )


def _as_far_as_proved(side: _Side, files: DataColumns, field_id: int, *, is_upper: bool) -> _Side:
    """For UUIDs in files that may have several row groups, the bounds that `uuid_bound` proves."""
    row_group_counts = pc.fill_null(pc.list_value_length(files.batch["split_offsets"]), 0)
    is_whole = np.asarray(row_group_counts) == 1
    stored = files.metric("upper_bounds" if is_upper else "lower_bounds", field_id).values
    merged = bound_column(stored, UUIDType(), is_upper=is_upper)
    assert merged is not None, "bounds of UUIDs are ordered"
    pieces = pc.if_else(pa.array(is_whole), side.pieces, join_pieces([_VALUE, merged.values]))
    return _Side(pieces, np.where(is_whole, side.is_known, merged.is_known), side.is_odd)


def _encoded(stored: pa.BinaryArray, key_type: PrimitiveType, *, is_upper: bool) -> _Side:
    """RD-4: marker and payload of stored bounds. `single_value.encode_bound` computes the same for one bound."""
    is_stored = np.asarray(stored.is_valid())
    family = family_of(key_type)
    if family is KeyFamily.FIXED_BYTES:
        fits = is_stored & (np.asarray(pc.binary_length(stored).fill_null(0)) == fixed_width_bytes(key_type))
        payload = stored.cast(pa.large_binary()).fill_null(b"")
        return _Side(join_pieces([_VALUE, payload]), fits, is_stored & ~fits)
    bound = bound_column(stored, key_type, is_upper=is_upper)
    assert bound is not None, f"a key column of type {key_type}"
    if isinstance(bound.values, np.ndarray):
        numbers = pa.array(bound.values != 0 if isinstance(key_type, BooleanType) else bound.values)
        return _Side(encode_column(numbers, key_type), bound.is_known, bound.is_odd)
    if family is KeyFamily.DECIMAL:
        return _Side(join_pieces([_VALUE, bound.values]), bound.is_known, bound.is_odd)
    return _Side(encode_column(bound.values, key_type), bound.is_known, bound.is_odd)
