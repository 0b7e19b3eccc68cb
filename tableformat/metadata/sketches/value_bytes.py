"""Values of a column as bytes, in Iceberg's single-value serialization, in groups of one length.

Source: Iceberg table specification, "Binary single-value serialization".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import BinaryType, BooleanType, DecimalType, PrimitiveType, StringType

ByteRows = npt.NDArray[np.uint8]


def distinct_value_bytes(values: pa.ChunkedArray, column_type: PrimitiveType) -> Iterator[ByteRows]:
    """The distinct values that are not null: a matrix for each length, with a row of bytes for each value. Empty for a
    column of type `unknown` (FM-22)."""
    if pa.types.is_null(values.type):
        return
    if isinstance(values.type, pa.BaseExtensionType):
        # PyArrow does not find distinct values of extension types, not even of its own UUIDs.
        values = pa.chunked_array([chunk.storage for chunk in values.chunks], values.type.storage_type)
    distinct = pc.unique(values).drop_null()
    if pa.types.is_dictionary(distinct.type):
        distinct = distinct.dictionary_decode()
    if isinstance(column_type, BooleanType):
        yield np.asarray(distinct.cast(pa.uint8())).reshape(-1, 1)
    elif isinstance(column_type, DecimalType):
        yield from _decimals(distinct)
    elif pa.types.is_fixed_size_binary(distinct.type):
        yield _fixed(distinct, distinct.type.byte_width)
    elif isinstance(column_type, StringType | BinaryType):
        yield from _variable(distinct.cast(pa.large_binary()))
    else:
        yield _fixed(distinct, distinct.type.bit_width // 8)


def _fixed(values: pa.Array, width: int) -> ByteRows:
    """Numbers are little endian in Arrow and in Iceberg. UUIDs and fixed values have the same bytes in both."""
    data = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    return data[values.offset * width : (values.offset + len(values)) * width].reshape(-1, width)


def _variable(values: pa.LargeBinaryArray) -> Iterator[ByteRows]:
    _, offset_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    lengths = np.diff(offsets)
    for length in np.unique(lengths).tolist():
        starts = offsets[:-1][lengths == length]
        yield data[starts[:, None] + np.arange(length)]


def _decimals(values: pa.Array) -> Iterator[ByteRows]:
    """Big endian, with the minimum number of bytes for the unscaled number and its sign."""
    rows = _fixed(values.cast(pa.decimal128(38, values.type.scale)), 16)[:, ::-1]
    sign = np.where(rows[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    # A leading byte is left out if it only repeats the sign and the next byte also shows the sign.
    shown = (rows[:, 1:] >= 0x80) == (sign == 0xFF)
    needless = np.logical_and.accumulate((rows[:, :-1] == sign) & shown, axis=1).sum(axis=1)
    for count in np.unique(needless).tolist():
        yield np.ascontiguousarray(rows[needless == count, count:])
