"""The bytes that a file stores for a value, from which its filter was made."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.types as pat
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, IcebergType, NestedField, PrimitiveType, UUIDType

from tableformat.keys.exact_decimals import unscaled_of
from tableformat.metadata.arrow_schema import arrow_schema

_WIDTHS = {"INT32": 4, "INT64": 8}


@dataclass(frozen=True, slots=True)
class StoredForm:
    """The form in which a Parquet column stores the values of a table column."""

    physical: str
    width: int
    """Bytes of a value; 0 if the length varies."""
    decimal_scale: int | None = None

    def bytes_of(self, value: Any) -> bytes | None:
        """The stored bytes of a value in Iceberg's internal representation; None if the file's type cannot hold it."""
        if isinstance(value, Decimal):
            assert self.decimal_scale is not None
            value = unscaled_of(value, self.decimal_scale)
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, bytes):
            return value if self.width in (0, len(value)) else None
        if not -(1 << 8 * self.width - 1) <= value < 1 << 8 * self.width - 1:
            return None
        is_number = self.physical in _WIDTHS
        return int(value).to_bytes(self.width, "little" if is_number else "big", signed=True)


def stored_form(physical: str, type_length: int, stored: pa.DataType, column_type: IcebergType) -> StoredForm | None:
    """The form of a column with this physical type, whose values Arrow reads as `stored`. None if values of the table's
    type cannot be looked up by their bytes: booleans, floats, and types that are neither the table's nor promoted to it
    without a change of unit."""
    if not isinstance(column_type, PrimitiveType):
        return None
    width = _WIDTHS.get(physical, type_length)
    if isinstance(column_type, DecimalType):
        is_same_scale = pat.is_decimal(stored) and stored.scale == column_type.scale
        return StoredForm(physical, width, column_type.scale) if is_same_scale and width else None
    if isinstance(column_type, UUIDType):
        return StoredForm(physical, width) if width == 16 else None
    has_bytes = physical in (*_WIDTHS, "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
    return StoredForm(physical, width) if has_bytes and _is_alike(stored, _arrow_type(column_type)) else None


def _is_alike(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if pat.is_boolean(wanted) or pat.is_floating(wanted):
        return False
    are_texts = _is_text(stored) and _is_text(wanted)
    are_bytes = _is_bytes(stored) and _is_bytes(wanted)
    are_integers = pat.is_signed_integer(stored) and pat.is_signed_integer(wanted)
    return bool(stored == wanted or are_texts or are_bytes or are_integers)


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pat.is_string(arrow_type) or pat.is_large_string(arrow_type))


def _is_bytes(arrow_type: pa.DataType) -> bool:
    return bool(pat.is_binary(arrow_type) or pat.is_large_binary(arrow_type))


@lru_cache(maxsize=128)
def _arrow_type(column_type: PrimitiveType) -> pa.DataType:
    return arrow_schema(Schema(NestedField(1, "column", column_type, required=False))).field(0).type
