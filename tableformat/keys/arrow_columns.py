"""Converts key values (Arrow columns, Python values) to Arrow arrays of the key's types.

Arrow's casts allow more than a delete may: text becomes numbers, a fraction becomes a whole number, an aware datetime
loses its zone. A changed bound deletes other rows than the caller meant, so only conversions that keep the value are
allowed.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.arguments import shown
from tableformat.errors import InvalidKeyError
from tableformat.keys.families import arrow_type_of
from tableformat.keys.microseconds import without_finer_digits

_LARGE_OFFSET_LIMIT_BYTES: Final = 1 << 31
_LARGEST_FLOAT: Final = float(np.finfo(np.float32).max)
_INTEGER: Final = (int, np.integer)
_BYTES: Final = (bytes, bytearray, memoryview)

_PYTHON_TYPES: Final[dict[type[PrimitiveType], tuple[type, ...]]] = {
    BooleanType: (bool, np.bool_),
    IntegerType: _INTEGER,
    LongType: _INTEGER,
    FloatType: (float, np.floating, *_INTEGER),
    DoubleType: (float, np.floating, *_INTEGER),
    DecimalType: (Decimal, *_INTEGER),
    DateType: (dt.date,),
    TimeType: (dt.time,),
    TimestampType: (dt.datetime, np.datetime64),
    TimestampNanoType: (dt.datetime, np.datetime64),
    TimestamptzType: (dt.datetime,),
    TimestamptzNanoType: (dt.datetime,),
    StringType: (str,),
    BinaryType: _BYTES,
    FixedType: _BYTES,
    UUIDType: (uuid.UUID, *_BYTES),
}
_OF_MICROSECONDS: Final = (TimestampType, TimestamptzType)
_ZONED: Final = (TimestamptzType, TimestamptzNanoType)


def single_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array. Copies only if there are several chunks."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.nbytes >= _LARGE_OFFSET_LIMIT_BYTES and pa.types.is_string(column.type):
        column = column.cast(pa.large_string())
    if column.nbytes >= _LARGE_OFFSET_LIMIT_BYTES and pa.types.is_binary(column.type):
        column = column.cast(pa.large_binary())
    return column.combine_chunks()


def plain_values(column: pa.Array) -> pa.Array:
    """The plain values, for Arrow functions that support neither extension types nor dictionaries nor views."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary()) if pa.types.is_binary_view(column.type) else column


def as_key_array(column: pa.Array | pa.ChunkedArray, key_type: PrimitiveType, *, name: str) -> pa.Array:
    """The caller's column in the key's Arrow type, with every value unchanged. Otherwise raises InvalidKeyError, which
    names the column."""
    array = single_array(column)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    wanted = arrow_type_of(key_type)
    if array.type == wanted:
        return array
    given = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not _keeps_meaning(given, wanted):
        raise InvalidKeyError(f"column {name!r} is {key_type} in the key; values of Arrow type {given} do not fit.")
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise InvalidKeyError(f"column {name!r} is {key_type} in the key; a value does not fit: {error}") from error


def stored_key_array(column: pa.Array | pa.ChunkedArray, key_type: PrimitiveType, *, name: str) -> pa.Array:
    """DA-6: a column of a data file in the key's Arrow type, as a scan reads it, including promoted dates and the
    timestamps of other writers. Raises InvalidKeyError, which names the column, if it cannot have the type."""
    array, wanted = single_array(column), arrow_type_of(key_type)
    if array.type == wanted or not pa.types.is_timestamp(wanted):
        return as_key_array(array, key_type, name=name)
    values = plain_values(array)
    if not (pa.types.is_timestamp(values.type) or pa.types.is_date(values.type)):
        return as_key_array(values, key_type, name=name)
    return without_finer_digits(values, wanted).cast(wanted)


def array_of_values(values: Sequence[Any], key_type: PrimitiveType, *, name: str) -> pa.Array:
    """Python values in the key's Arrow type; None is null. Raises InvalidKeyError with the column and the value that
    does not fit."""
    checked = [None if value is None else _checked(value, key_type, name) for value in values]
    try:
        return pa.array(checked, arrow_type_of(key_type))
    except (pa.ArrowException, OverflowError, UnicodeEncodeError, ValueError) as error:
        raise InvalidKeyError(
            f"column {name!r} of type {key_type} cannot store a value of {values!r}: {error}."
        ) from error


def _checked(value: Any, key_type: PrimitiveType, name: str) -> Any:
    accepted: tuple[Any, ...] = _PYTHON_TYPES.get(type(key_type), ())
    is_wrong_kind = (isinstance(value, bool) and bool not in accepted) or (
        isinstance(value, dt.datetime) and isinstance(key_type, DateType)
    )
    if is_wrong_kind or not isinstance(value, accepted):
        several = isinstance(value, list | tuple | set)
        hint = f"For several keys, pass a list: [{{{name!r}: ...}}, ...]." if several else "Convert it first."
        raise InvalidKeyError(f"column {name!r} is {key_type}, not {shown(value)}. {hint}")
    if isinstance(value, dt.datetime | dt.time):
        _check_zone(value, key_type, name)
    if isinstance(key_type, _OF_MICROSECONDS) and getattr(value, "nanosecond", False):
        # Arrow silently drops the nanoseconds of pandas timestamps, which would change the key.
        raise InvalidKeyError(f"column {name!r} is {key_type} and cannot store the nanoseconds of {value!r}.")
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, _BYTES):
        return bytes(value)
    if isinstance(key_type, FloatType) and abs(float(value)) > _LARGEST_FLOAT and not math.isinf(float(value)):
        raise InvalidKeyError(f"column {name!r} of type float cannot store {value!r}: it is too large.")
    return value


def _check_zone(value: dt.datetime | dt.time, key_type: PrimitiveType, name: str) -> None:
    if isinstance(key_type, _ZONED) and value.tzinfo is None:
        raise InvalidKeyError(f"column {name!r} is {key_type}, but {value!r} has no time zone. Add one.")
    if not isinstance(key_type, _ZONED) and value.tzinfo is not None:
        raise InvalidKeyError(f"column {name!r} is {key_type}, but {value!r} has a time zone. Remove it.")


def _keeps_meaning(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow's checked cast between the types keeps the meaning of every value."""
    types = pa.types
    if types.is_null(given):
        return True
    if types.is_timestamp(wanted):
        return types.is_timestamp(given) and (given.tz is None) == (wanted.tz is None)
    if types.is_floating(wanted):
        return bool(types.is_floating(given) or types.is_integer(given))
    if types.is_fixed_size_binary(wanted):
        return bool(types.is_fixed_size_binary(given) or _is_binary(given))
    if types.is_large_binary(wanted):
        return bool(types.is_fixed_size_binary(given) or _is_binary(given))
    same_kind = (
        types.is_boolean,
        types.is_integer,
        types.is_decimal,
        types.is_date,
        types.is_time,
        _is_text,
    )
    return any(kind(given) and kind(wanted) for kind in same_kind)


def _is_text(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type))


def _is_binary(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(arrow_type) or types.is_large_binary(arrow_type) or types.is_binary_view(arrow_type))
