"""Normalises columns so that equal values are equal bytes.

Arrow's hash kernels compare bytes: they distinguish -0.0 from 0.0 and NaNs from each other, and do not handle promoted
types. After `comparable` they are exact for every primitive type.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyiceberg.types import PrimitiveType

from tableformat.keys.families import arrow_type_of
from tableformat.keys.microseconds import without_finer_digits


def comparable_type(iceberg_type: PrimitiveType) -> pa.DataType:
    """The Arrow type of columns of this type after `comparable`."""
    arrow_type = arrow_type_of(iceberg_type)
    return pa.int64() if pa.types.is_floating(arrow_type) else arrow_type


def comparable(column: pa.ChunkedArray, iceberg_type: PrimitiveType) -> pa.ChunkedArray:
    """DA-4, DA-5, DA-6: the column in the given type, which may be wider than its own, with equal values as equal
    bytes.

    Floats become the bits of a double with one zero and one NaN. Dictionary encoded columns stay so, nulls stay nulls.
    Raises pyarrow.ArrowInvalid or pyarrow.ArrowNotImplementedError for a column that the type was not promoted from.
    """
    target = arrow_type_of(iceberg_type)
    if pa.types.is_timestamp(target) and column.num_chunks:
        column = pa.chunked_array([without_finer_digits(chunk, target) for chunk in column.chunks])
    if pa.types.is_floating(target):
        return _float_bits(column.cast(pa.float64()))
    if pa.types.is_dictionary(column.type):
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(target)) for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, pa.dictionary(column.type.index_type, target))
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return column if column.type == target else column.cast(target)


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with the values of its dictionary in place of the indices; the same object without a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _float_bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """DA-5: all NaNs have the same bits, and so do both zeros."""
    valid = column.is_valid().to_numpy()
    values = column.fill_null(0.0).to_numpy() + 0.0  # -0.0 + 0.0 is 0.0
    values[np.isnan(values)] = np.nan
    return pa.chunked_array([pa.array(values.view(np.int64), mask=~valid)])
