"""Casts columns of primitive types exactly to the table's types, and names every value that does not fit.

A cast is chosen once from the two types and then runs on every batch. Arrow's checked cast does the work. Only if it
finds a value that does not fit, the positions of such values are computed, with masks instead of a loop.

Writing is strict: nothing is rounded or truncated. Reading is separate (`parquet/column_conversion.py`) and lenient: a
file of any writer is accepted, within the promotions that the schema allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.errors import SchemaMismatchError

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Misfits:
    """Values that a column of the table cannot hold."""

    positions: Positions
    """Ascending positions in the array that was cast."""
    columns: pa.Array
    """Dotted names of the columns, nested ones included."""
    reasons: pa.Array
    """One sentence each, without the column's name."""
    uncovered: bool = False
    """The values fit, but lie outside of all range partitions (RP-5)."""
    retired_tags: tuple[str, ...] = ()
    """The tags of the retired ranges that contain some of the values (RP-30)."""


@dataclass(frozen=True, slots=True)
class Cast:
    """An array in the table's type; null in place of values that do not fit."""

    array: pa.Array
    misfits: tuple[Misfits, ...] = ()


ArrayCast = Callable[[pa.Array, str], Cast]
"""Casts an array; the text is the column's dotted name."""

_EXACT_INTEGER_LIMIT: Final = {pa.float32(): 2**24, pa.float64(): 2**53}
"""Integers up to here are exact in a floating point type."""
_SHOWN_CHARACTERS: Final = 60
_UUID_TEXT: Final = r"^(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})$"


def primitive_cast(source: pa.DataType, target: pa.DataType) -> ArrayCast | None:  # noqa: PLR0911
    """The cast from an Arrow type to the table's type. None for types of different families, which no cast should join.

    `source` is a plain type: dictionaries, run ends and extension types except uuid are decoded before.
    """
    if pa.types.is_null(source):
        return lambda array, _: Cast(pa.nulls(len(array), target))
    if _is_text(source) and target == pa.large_string():
        return _cast_text
    if source == target:
        return lambda array, _: Cast(array)
    if pa.types.is_integer(source) and (pa.types.is_integer(target) or pa.types.is_floating(target)):
        return _checked(target, _outside_integers(target), f"does not fit {_name(target)}")
    if pa.types.is_floating(source) and pa.types.is_floating(target):
        return _cast_floating(target)
    if pa.types.is_decimal(target):
        return _decimal_cast(source, target)
    if _same_time_family(source, target):
        return _checked(target, _not_restored_by(target), _time_reason(source, target))
    if target == pa.large_binary() and _is_bytes(source):
        return lambda array, _: Cast(array.cast(target))
    return _fixed_width_cast(source, target)


def _fixed_width_cast(source: pa.DataType, target: pa.DataType) -> ArrayCast | None:
    """The cast to `fixed(n)` or `uuid`."""
    uuid_target = target == pa.uuid()
    storage = target.storage_type if uuid_target else target
    if not pa.types.is_fixed_size_binary(storage):
        return None
    if source == pa.uuid():
        return (lambda array, _: Cast(array.storage)) if storage.byte_width == 16 else None
    if pa.types.is_fixed_size_binary(source):
        return (lambda array, _: Cast(_as_type(array, target))) if source == storage else None
    if uuid_target and _is_text(source):
        return _cast_uuid_text
    if not _is_bytes(source):
        return None
    reason = f"bytes long, but {_name(target)} requires exactly {storage.byte_width}"

    def cast(array: pa.Array, column: str) -> Cast:
        array = array.cast(pa.large_binary())
        lengths = pc.binary_length(array)
        wrong = _true(pc.not_equal(lengths, storage.byte_width))
        kept, misfits = _take_out(array, wrong, column, lengths.cast(pa.string()), f"{reason}")
        return Cast(_as_type(kept.cast(storage), target), misfits)

    return cast


def _checked(target: pa.DataType, find: Callable[[pa.Array], Mask], reason: str) -> ArrayCast:
    """Arrow's checked cast. If it fails, `find` returns which values did not fit."""

    def cast(array: pa.Array, column: str) -> Cast:
        try:
            return Cast(array.cast(target))
        except pa.ArrowInvalid:
            kept, misfits = _take_out(array, find(array), column, array.cast(pa.string()), reason)
            return Cast(kept.cast(target), misfits)

    return cast


def _outside_integers(target: pa.DataType) -> Callable[[pa.Array], Mask]:
    if pa.types.is_integer(target):
        limits = np.iinfo(target.to_pandas_dtype())
        lowest, highest = int(limits.min), int(limits.max)
    else:
        highest = _EXACT_INTEGER_LIMIT[target]
        lowest = -highest

    def find(array: pa.Array) -> Mask:
        source = np.iinfo(array.type.to_pandas_dtype())
        outside = np.zeros(len(array), dtype=np.bool_)
        # A limit beyond the source type excludes nothing, and is not a value of that type.
        if highest < source.max:
            outside |= _true(pc.greater(array, pa.scalar(highest, array.type)))
        if lowest > source.min:
            outside |= _true(pc.less(array, pa.scalar(lowest, array.type)))
        return outside

    return find


def _time_reason(source: pa.DataType, target: pa.DataType) -> str:
    if pa.types.is_timestamp(source) and source.unit == "ns" and pa.types.is_timestamp(target):
        return (
            f"has nanoseconds, which {_name(target)} cannot store; round them to microseconds, or use a column of type "
            f"{_name(target)}_ns in a table with format-version 3"
        )
    return f"has digits or a range that {_name(target)} cannot store"


def _not_restored_by(target: pa.DataType) -> Callable[[pa.Array], Mask]:
    """Finds values that change in an unchecked cast to the target and back."""
    return lambda array: _true(pc.not_equal(array.cast(target, safe=False).cast(array.type, safe=False), array))


def _cast_floating(target: pa.DataType) -> ArrayCast:
    """Rounds to the nearest value, because a Python float in a `float` column requires it. Only a finite value that
    becomes infinite does not fit."""

    def cast(array: pa.Array, column: str) -> Cast:
        narrowed = array.cast(target)
        if array.type.bit_width <= target.bit_width:
            return Cast(narrowed)
        overflown = _true(pc.and_(pc.is_inf(narrowed), pc.is_finite(array)))
        if not overflown.any():
            return Cast(narrowed)
        kept, misfits = _take_out(array, overflown, column, array.cast(pa.string()), f"does not fit {_name(target)}")
        return Cast(kept.cast(target), misfits)

    return cast


def _decimal_cast(source: pa.DataType, target: pa.DataType) -> ArrayCast | None:
    if pa.types.is_integer(source):
        # Twenty digits hold every 64-bit integer. Arrow requires a type that can hold all of them, before it checks the
        # values.
        wide = pa.decimal256(20 + target.scale, target.scale)
        from_wide = _decimal_cast(wide, target)
        assert from_wide is not None
        return lambda array, column: from_wide(array.cast(wide), column)
    if not pa.types.is_decimal(source):
        return None
    return _checked(target, _outside_decimal(source, target), f"does not fit {_name(target)} exactly")


def _outside_decimal(source: pa.DataType, target: pa.DataType) -> Callable[[pa.Array], Mask]:
    whole_digits = target.precision - target.scale

    def find(array: pa.Array) -> Mask:
        wide = array.cast(pa.decimal256(76, source.scale))
        outside = np.zeros(len(array), dtype=np.bool_)
        if source.scale > target.scale:
            cut = wide.cast(pa.decimal256(76, target.scale), safe=False).cast(wide.type, safe=False)
            outside |= _true(pc.not_equal(cut, wide))
        if whole_digits < source.precision - source.scale:
            outside |= _true(pc.greater_equal(pc.abs(wide), pa.scalar(Decimal(10) ** whole_digits, wide.type)))
        return outside

    return find


def _cast_text(array: pa.Array, column: str) -> Cast:
    try:
        # Arrow producers in C may pass arbitrary bytes as text. Other readers cannot read a file with such text.
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(f"column {column!r} contains text that is not valid UTF-8: {error}.") from error
    return Cast(array.cast(pa.large_string()))


def _cast_uuid_text(array: pa.Array, column: str) -> Cast:
    array = array.cast(pa.large_string())
    wrong = ~_true(pc.fill_null(pc.match_substring_regex(array, _UUID_TEXT), True))
    kept, misfits = _take_out(array, wrong, column, array, "is not a UUID")
    digits = pc.fill_null(pc.replace_substring(kept, "-", ""), "0" * 32)
    fixed = digits.cast(pa.large_binary()).cast(pa.binary(32))
    text = np.frombuffer(fixed.buffers()[1], np.uint8)[32 * fixed.offset :][: 32 * len(fixed)]
    # The low nibble of an ASCII digit is its value. That of a letter counts from 1, and bit 6 of a letter is set.
    nibbles = (text & 0x0F) + 9 * (text >> 6)
    packed = (nibbles[0::2] << 4) | nibbles[1::2]
    storage = pa.Array.from_buffers(pa.binary(16), len(kept), [None, pa.py_buffer(packed.astype(np.uint8))])
    storage = pc.if_else(pc.is_valid(kept), storage, pa.scalar(None, pa.binary(16)))
    return Cast(pa.ExtensionArray.from_storage(pa.uuid(), storage), misfits)


def _take_out(
    array: pa.Array, wrong: Mask, column: str, shown: pa.Array, reason: str
) -> tuple[pa.Array, tuple[Misfits, ...]]:
    """The array with nulls where the mask is set, and those values as misfits. `shown` has the text to quote for each
    value."""
    if not wrong.any():
        return array, ()
    positions = np.flatnonzero(wrong).astype(np.int64)
    quoted = pc.utf8_slice_codeunits(shown.take(pa.array(positions)).cast(pa.large_string()), 0, _SHOWN_CHARACTERS)
    reasons = pc.binary_join_element_wise(quoted, *(pa.scalar(text, pa.large_string()) for text in (reason, " ")))
    misfits = Misfits(positions, pa.repeat(pa.scalar(column, pa.large_string()), len(positions)), reasons)
    return pc.if_else(pa.array(wrong), pa.scalar(None, array.type), array), (misfits,)


def _true(mask: pa.Array) -> Mask:
    """An Arrow mask as numpy; null is False."""
    result: Mask = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return result


def _same_time_family(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether both are dates, both are times, both are timestamps with a zone, or both are timestamps without one."""
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        return bool((source.tz is None) == (target.tz is None))
    return bool(
        (pa.types.is_date(source) and pa.types.is_date(target))
        or (pa.types.is_time(source) and pa.types.is_time(target))
    )


def _is_text(data_type: pa.DataType) -> bool:
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(data_type) for check in checks)


def _is_bytes(data_type: pa.DataType) -> bool:
    checks = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(check(data_type) for check in checks)


def _as_type(array: pa.Array, target: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(target, array) if isinstance(target, pa.BaseExtensionType) else array


def _name(target: pa.DataType) -> str:
    """Iceberg's name of the type."""
    if pa.types.is_timestamp(target):
        return ("timestamptz" if target.tz else "timestamp") + ("_ns" if target.unit == "ns" else "")
    if pa.types.is_decimal(target):
        return f"decimal({target.precision}, {target.scale})"
    if pa.types.is_fixed_size_binary(target):
        return f"fixed[{target.byte_width}]"
    names = {pa.int32(): "int", pa.int64(): "long", pa.float32(): "float", pa.float64(): "double"}
    return names.get(target, {pa.date32(): "date", pa.time64("us"): "time", pa.uuid(): "uuid"}.get(target, str(target)))
