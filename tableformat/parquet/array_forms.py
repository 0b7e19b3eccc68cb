"""Arrays in another form of the same type: other offsets and field ids, without run ends, views or extension types.

A null struct has children, and Arrow may mark them as null. PyArrow's Parquet writer and Arrow's casts refuse such
nulls if the child is required. A value under a null parent is never stored, so the mark is removed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def null_column(row_count: int, target: pa.DataType) -> pa.Array:
    """Nulls of the type, without nulls in its required parts."""
    return as_type(pa.nulls(row_count, target), target)


def has_required_parts(data_type: pa.DataType) -> bool:
    """Whether any part is required. The key of a map always is, which Arrow enforces itself."""
    is_map = pa.types.is_map(data_type)
    parts = [*_parts_of(data_type.key_type), data_type.item_field] if is_map else _parts_of(data_type)
    return any(not part.nullable or has_required_parts(part.type) for part in parts)


def rows_as(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the types of `schema`, column by column."""
    columns = [
        pa.chunked_array([as_type(chunk, field.type) for chunk in column.chunks], field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def batch_as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the types of `schema`, column by column."""
    columns = [as_type(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def plain_type(of: pa.DataType) -> pa.DataType:
    """The type without string and binary views and without run ends, at every level: PyArrow can neither take nor
    compare their rows."""
    if pa.types.is_run_end_encoded(of):
        return plain_type(of.value_type)
    if pa.types.is_string_view(of):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(of) else with_parts(of, plain_type)


def storage_of(of: pa.DataType) -> pa.DataType:
    """The type with extension types replaced by their storage, at every level."""
    return storage_of(of.storage_type) if isinstance(of, pa.BaseExtensionType) else with_parts(of, storage_of)


def with_parts(of: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A struct, list or map with other types of its parts. Any other type is returned unchanged."""

    def changed(part: pa.Field) -> pa.Field:
        return part.with_type(change(part.type))

    if pa.types.is_struct(of):
        return pa.struct([changed(part) for part in of])
    if pa.types.is_map(of):
        return pa.map_(changed(of.key_field), changed(of.item_field))
    return list_with(of, changed(of.value_field)) if is_list(of) else of


def as_type(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The array in a type that differs only in form. Nulls of required parts under a null parent are removed. Other
    nulls are kept, and the Parquet writer refuses them."""
    if array.type == target and not has_required_parts(target):
        return array
    if pa.types.is_struct(target):
        return _struct(array, target)
    if pa.types.is_list(target) or pa.types.is_large_list(target):
        return _list(array, target)
    if pa.types.is_map(target):
        return _map(array, target)
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    elif isinstance(array, pa.ExtensionArray) and array.type != target:
        array = array.storage
    return array if array.type == target else array.cast(target)


def is_list(data_type: pa.DataType) -> bool:
    """Whether it is one of Arrow's list types, which Parquet stores in the same way."""
    types = pa.types
    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return any(is_kind(data_type) for is_kind in kinds)


def list_with(data_type: pa.DataType, element: pa.Field) -> pa.DataType:
    """A list of the same kind with another element."""
    types = pa.types
    if types.is_fixed_size_list(data_type):
        return pa.list_(element, data_type.list_size)
    if types.is_large_list(data_type):
        return pa.large_list(element)
    if types.is_list_view(data_type):
        return pa.list_view(element)
    return pa.large_list_view(element) if types.is_large_list_view(data_type) else pa.list_(element)


def without_nulls(array: pa.Array) -> pa.Array:
    """The array without its validity bitmap, for a required part, whose nulls are never written."""
    if array.null_count == 0:
        return array
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, without_nulls(array.storage))
    if pa.types.is_struct(array.type):
        children = [array.field(index) for index in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(array.type))
    if pa.types.is_large_list(array.type) or pa.types.is_list(array.type):
        return _lists(list_lengths(array), elements(array), array.type, None)
    if pa.types.is_map(array.type):
        array = _compacted(array)
        return pa.MapArray.from_arrays(array.offsets, array.keys, array.items, type=array.type)
    buffers = array.buffers()
    return pa.Array.from_buffers(array.type, len(array), [None, *buffers[1:]], null_count=0, offset=array.offset)


def list_lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    """The number of elements of each list, 0 for a null list."""
    counts = pc.if_else(pc.is_valid(array), pc.list_value_length(array).cast(pa.int64()), 0)
    result: npt.NDArray[np.int64] = pc.fill_null(counts, 0).to_numpy(zero_copy_only=False)
    return result


def elements(array: pa.Array) -> pa.Array:
    """The elements of all lists that are not null. PyArrow's `flatten` cannot create an empty array of an extension
    type."""
    return array.flatten() if list_lengths(array).any() else pa.nulls(0, array.type.value_type)


def offsets(counts: npt.NDArray[np.int64]) -> pa.Array:
    """The offsets of lists of these lengths that follow each other."""
    return pa.array(np.concatenate(([0], np.cumsum(counts, dtype=np.int64))))


def _struct(array: pa.StructArray, target: pa.StructType) -> pa.Array:
    present = array.is_valid() if array.null_count else None
    # flatten() gives the children the nulls of the struct as well.
    children = [_part(child, field, present) for child, field in zip(array.flatten(), target, strict=True)]
    mask = None if present is None else pc.invert(present)
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _part(child: pa.Array, field: pa.Field, present: pa.Array | None) -> pa.Array:
    child = as_type(child, field.type)
    if field.nullable or present is None or child.filter(present).null_count:
        return child
    return without_nulls(child)


def _list(array: pa.Array, target: pa.DataType) -> pa.Array:
    values = as_type(elements(array), target.value_type)
    mask = array.is_null() if array.null_count else None
    return _lists(list_lengths(array), values, target, mask)


def _map(array: pa.MapArray, target: pa.MapType) -> pa.Array:
    array = _compacted(array)
    counts = np.diff(array.offsets.to_numpy())
    keys, items = as_type(array.keys, target.key_type), as_type(array.items, target.item_type)
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(offsets(counts).cast(pa.int32()), keys, items, type=target, mask=mask)


def _compacted(array: pa.MapArray) -> pa.MapArray:
    """The same maps, rebuilt: a null map may span entries, and a slice shares the entries of its parent. Taking every
    row removes both."""
    return array.take(pa.array(np.arange(len(array))))


def _lists(counts: npt.NDArray[np.int64], values: pa.Array, target: pa.DataType, mask: pa.Array | None) -> pa.Array:
    if pa.types.is_large_list(target):
        return pa.LargeListArray.from_arrays(offsets(counts), values, type=target, mask=mask)
    return pa.ListArray.from_arrays(offsets(counts).cast(pa.int32()), values, type=target, mask=mask)


def _parts_of(data_type: pa.DataType) -> list[pa.Field]:
    return [data_type.field(index) for index in range(data_type.num_fields)]
