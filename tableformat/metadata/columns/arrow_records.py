"""Decodes Avro records to Arrow arrays: many by lanes, few or unusual ones by fastavro, with equal results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tableformat.errors import CorruptFileError
from tableformat.metadata.columns.avro_lanes import (
    Bytes,
    Decoded,
    Flags,
    LaneBuffer,
    Lists,
    Nulls,
    Numbers,
    Positions,
    Records,
    UnsupportedLayoutError,
)
from tableformat.metadata.columns.record_starts import Blocks, SplitSchema, decode_blocks
from tableformat.metadata.manifests.avro_container import RecordCodec, decode_block

LANES_MIN: Final = 24
"""The number of records from which lanes are faster than fastavro."""
_GROUP_BYTES: Final = 6 * 1024 * 1024
"""The number of records that are decoded together, so that they fit the processor's cache."""
_COPIED_LENGTHS_MAX: Final = 48
_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}


def arrow_type(schema: Any) -> pa.DataType:
    """The Arrow type of an Avro type without logical types. Raises UnsupportedLayoutError for maps, enums and mixed
    unions."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        if len(others) > 1:
            raise UnsupportedLayoutError("a union of several types")
        return arrow_type(others[0]) if others else pa.null()
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, (dict, list)):
        return arrow_type(kind)
    if kind == "record":
        return pa.struct([(field["name"], arrow_type(field["type"])) for field in schema["fields"]])
    if kind == "array":
        return pa.list_(arrow_type(schema["items"]))
    if kind == "fixed":
        return pa.binary(schema["size"])
    if kind in _PLAIN:
        return _PLAIN[kind]
    raise UnsupportedLayoutError(f"Avro type {kind!r}")


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Adjacent records of one file."""

    record_count: int
    data: bytes
    location: str
    """The location of the file, for messages."""


def decode_entries(
    blocks: Sequence[RecordBlock], record_schema: Mapping[str, Any], codec: RecordCodec
) -> list[pa.RecordBatch]:
    """The records in blocks of manifest entries as batches. The fields of `data_file` are top-level columns.

    Raises CorruptFileError, which names the file, if the records do not fit the schema, and UnsupportedLayoutError for
    a schema that cannot be converted to Arrow arrays here.
    """
    split = SplitSchema.of(record_schema, "data_file", "file_path")
    types = {field["name"]: arrow_type(field["type"]) for field in (*split.before, *split.after)}
    types[split.path] = pa.string()
    batches = []
    for group in _groups([block for block in blocks if block.record_count > 0]):
        is_many = sum(block.record_count for block in group) >= LANES_MIN
        batch = _by_lanes(group, split, types) if is_many else None
        batches.append(_one_by_one(group, types, codec) if batch is None else batch)
    return batches


def _groups(blocks: Sequence[RecordBlock]) -> list[list[RecordBlock]]:
    groups: list[list[RecordBlock]] = []
    size = 0
    for block in blocks:
        if not groups or size + len(block.data) > _GROUP_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(block)
        size += len(block.data)
    return groups


def _by_lanes(
    blocks: Sequence[RecordBlock], split: SplitSchema, types: Mapping[str, pa.DataType]
) -> pa.RecordBatch | None:
    """None if the lanes cannot be proved correct. The blocks may be damaged."""
    laid = Blocks.of([(block.record_count, block.data) for block in blocks])
    decoded = decode_blocks(laid, split)
    if decoded is None:
        return None
    count = int(laid.counts.sum())
    try:
        arrays = [_to_arrow(decoded[name], data_type, laid.buffer, count) for name, data_type in types.items()]
    except pa.ArrowInvalid:
        return None  # Text that is not UTF-8, an int of more than 32 bits: fastavro says where.
    return pa.RecordBatch.from_arrays(arrays, names=list(types))


def _one_by_one(blocks: Sequence[RecordBlock], types: Mapping[str, pa.DataType], codec: RecordCodec) -> pa.RecordBatch:
    records: list[dict[str, Any]] = []
    for block in blocks:
        decoded = decode_block(block.record_count, block.data, codec, block.location)
        records += ({**record, **record["data_file"]} for record in decoded)
    try:
        arrays = [pa.array([record[name] for record in records], data_type) for name, data_type in types.items()]
    except pa.ArrowInvalid as error:
        raise CorruptFileError(blocks[0].location, f"a value does not fit its type ({error}).") from error
    return pa.RecordBatch.from_arrays(arrays, names=list(types))


def _to_arrow(decoded: Decoded, data_type: pa.DataType, buffer: LaneBuffer, count: int) -> pa.Array:
    if isinstance(decoded, Nulls):
        return pa.nulls(count, data_type)
    if isinstance(decoded, Numbers):
        return pa.array(decoded.values, mask=_mask(decoded.valid)).cast(data_type)
    if isinstance(decoded, Bytes):
        return _bytes_array(decoded, data_type, buffer)
    if isinstance(decoded, Records):
        if not decoded.fields:
            return pa.array([{}] * count, data_type)
        children = [_to_arrow(decoded.fields[field.name], field.type, buffer, count) for field in data_type]
        return pa.StructArray.from_arrays(children, fields=list(data_type))
    return _list_array(decoded, data_type, buffer)


def _list_array(decoded: Lists, data_type: pa.DataType, buffer: LaneBuffer) -> pa.Array:
    offsets = np.zeros(len(decoded.counts) + 1, np.int32)
    np.cumsum(decoded.counts, out=offsets[1:])
    total = int(offsets[-1])
    items = pa.nulls(0, data_type.value_type)
    if decoded.items is not None:
        items = _to_arrow(decoded.items, data_type.value_type, buffer, total)
    return pa.ListArray.from_arrays(
        pa.array(offsets), items, type=data_type, mask=None if decoded.valid is None else pa.array(~decoded.valid)
    )


def _bytes_array(decoded: Bytes, data_type: pa.DataType, buffer: LaneBuffer) -> pa.Array:
    starts, lengths = decoded.starts, decoded.lengths
    if decoded.valid is not None:
        lengths = np.where(decoded.valid, lengths, 0)
    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    values = _gathered(buffer.data, starts, lengths, offsets)
    missing, validity = 0, None
    if decoded.valid is not None:
        missing = int(len(starts) - np.count_nonzero(decoded.valid))
        validity = pa.py_buffer(np.packbits(decoded.valid, bitorder="little"))
    variable = pa.string() if pa.types.is_string(data_type) else pa.binary()
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(values)]
    array = pa.Array.from_buffers(variable, len(starts), buffers, null_count=missing)
    array.validate(full=True)
    return array if variable == data_type else array.cast(data_type)


def _gathered(
    data: npt.NDArray[np.uint8], starts: Positions, lengths: Positions, offsets: npt.NDArray[np.int32]
) -> npt.NDArray[np.uint8]:
    """The concatenated bytes from each start on. Values of equal length are copied at once."""
    values = np.empty(int(offsets[-1]), np.uint8)
    is_uniform = len(lengths) > 0 and lengths.min() == lengths.max()
    distinct = lengths[:1] if is_uniform else np.unique(lengths)
    if len(distinct) > _COPIED_LENGTHS_MAX:
        shifts = np.repeat(starts - offsets[:-1], lengths)
        return data[shifts + np.arange(len(values))]
    for length in distinct.tolist():
        if length == 0:
            continue
        here = slice(None) if len(distinct) == 1 else np.flatnonzero(lengths == length)
        source = np.lib.stride_tricks.sliding_window_view(data, length)
        target = np.lib.stride_tricks.sliding_window_view(values, length, writeable=True)
        target[offsets[:-1][here]] = source[starts[here]]
    return values


def _mask(valid: Flags | None) -> Flags | None:
    return None if valid is None else ~valid
