"""Converts key columns from and to Iceberg's internal representation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyiceberg.types import PrimitiveType

from tableformat.keys.families import arrow_type_of


def array_of_internal_values(values: Sequence[Any], key_type: PrimitiveType) -> pa.Array:
    """An array of `arrow_type_of(key_type)`. Dates are days, times and timestamps are whole units, UUIDs are UUID
    objects or 16 bytes; None is null."""
    data_type = arrow_type_of(key_type)
    if pa.types.is_date32(data_type) or pa.types.is_time(data_type) or pa.types.is_timestamp(data_type):
        storage = pa.int32() if data_type.bit_width == 32 else pa.int64()
        return pa.array(values, storage).view(data_type)
    return pa.array([value.bytes if isinstance(value, UUID) else value for value in values], data_type)


def internal_values_of(column: pa.Array, key_type: PrimitiveType) -> list[Any]:
    """The inverse of `array_of_internal_values`, with UUIDs as 16 bytes."""
    data_type = arrow_type_of(key_type)
    if pa.types.is_date32(data_type) or pa.types.is_time(data_type) or pa.types.is_timestamp(data_type):
        column = column.view(pa.int32() if data_type.bit_width == 32 else pa.int64())
    return column.to_pylist()  # type: ignore[no-any-return]
