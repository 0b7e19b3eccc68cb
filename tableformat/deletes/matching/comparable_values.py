"""Normalises columns so that equal values are equal bytes, and codes them against a list of known values.

Arrow's hash kernels compare bytes: they distinguish -0.0 from 0.0 and NaNs from each other, and know nothing of
promoted types. After `comparable` they are exact for every primitive type.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.types import PrimitiveType

from tableformat.keys.families import arrow_type_of

NOT_FOUND = -1


def comparable_type(iceberg_type: PrimitiveType) -> pa.DataType:
    """The Arrow type that `comparable` gives columns of the type."""
    arrow_type = arrow_type_of(iceberg_type)
    return pa.int64() if pa.types.is_floating(arrow_type) else arrow_type


def comparable(column: pa.ChunkedArray, iceberg_type: PrimitiveType) -> pa.ChunkedArray:
    """DA-4, DA-5, DA-6: the column in the given type, which may be wider than its own, with equal values as equal
    bytes.

    Floats become the bits of a double with one zero and one NaN. Dictionary encoded columns stay so, nulls stay nulls.
    Raises pyarrow.ArrowInvalid or pyarrow.ArrowNotImplementedError for a column that the type was not promoted from.
    """
    target = arrow_type_of(iceberg_type)
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
    """DA-5: every NaN has the same bits, and so have both zeros."""
    valid = column.is_valid().to_numpy()
    values = column.fill_null(0.0).to_numpy() + 0.0  # -0.0 + 0.0 is 0.0
    values[np.isnan(values)] = np.nan
    return pa.chunked_array([pa.array(values.view(np.int64), mask=~valid)])


def codes_of(column: pa.ChunkedArray, known: pa.Array) -> NDArray[np.int64]:
    """DA-4: for each row the index of its value in `known`, whose values are distinct; NOT_FOUND where it is not there.

    Null is a value like any other: it is found where `known` has a null.
    """
    if not pa.types.is_dictionary(column.type):
        return _indices(column, known)
    if not column.num_chunks:
        return np.empty(0, np.int64)
    # One look-up over all dictionaries together: the kernel hashes `known` anew at each call.
    dictionaries = pa.chunked_array([chunk.dictionary for chunk in column.chunks])
    by_entry = np.append(_indices(dictionaries, known), _indices(pa.chunked_array([pa.nulls(1, known.type)]), known))
    null_entry = len(by_entry) - 1
    codes = []
    begin = 0
    for chunk in column.chunks:
        entries = pc.fill_null(chunk.indices.cast(pa.int64()), null_entry - begin).to_numpy()
        codes.append(by_entry[entries + begin])
        begin += len(chunk.dictionary)
    return np.concatenate(codes)


def _indices(column: pa.ChunkedArray, known: pa.Array) -> NDArray[np.int64]:
    found = pc.index_in(column, value_set=known)
    codes: NDArray[np.int64] = pc.fill_null(found, NOT_FOUND).to_numpy().astype(np.int64, copy=False)
    return codes
