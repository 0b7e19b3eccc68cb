"""Avro object container files, as used by manifests and manifest lists.

fastavro decodes and encodes the records. The container is our own for three reasons. fastavro's file reader converts
dates, timestamps and decimals to Python's datetime objects. It parses the schema in the header, several kilobytes of
JSON, again for every file, which costs more than a manifest of one entry. And a wrong record count or sync marker has
to be an error that names the file.

    file  = magic | metadata: map of bytes | sync marker | block*
    block = record count | byte length | records | sync marker

Source: Apache Avro 1.12 specification, "Object Container Files".
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import fastavro

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.properties import INFLATED_BYTES_MAX_DEFAULT
from tableformat.storage.inflating import Inflater
from tableformat.storage.outage import raise_unless_damage

RECORDS_PER_BLOCK: Final = 2_000
"""The maximum size of a block that a reader decompresses at once: some hundred kilobytes of manifest entries."""

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
DECODING_ERRORS: Final = (
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    struct.error,
    zlib.error,
    OSError,
)
"""Errors of fastavro and the decompressors for invalid bytes."""
_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True)
class Container:
    """The parts of a container file, with records that are not decoded yet."""

    location: str
    metadata: Mapping[str, bytes]
    """The header's map, including `avro.schema`."""
    blocks: tuple[tuple[int, bytes], ...]
    """Record count and decompressed records of every block."""

    @property
    def decoded_bytes(self) -> int:
        """The decompressed size of all records."""
        return sum(len(block) for _, block in self.blocks)


@dataclass(frozen=True, slots=True)
class RecordCodec:
    """A schema that was prepared for fastavro once. Compared by identity."""

    parsed: dict[str, Any]
    """A record whose only field is the array of a block's records. It is encoded like the array alone."""

    @staticmethod
    def of(record_schema: Mapping[str, Any]) -> RecordCodec:
        """The schema must not have logical types, or fastavro converts values."""
        wrapper = {
            "type": "record",
            "name": "block_of_records",
            "fields": [{"name": "records", "type": {"type": "array", "items": record_schema}}],
        }
        parsed = fastavro.parse_schema(wrapper)
        assert isinstance(parsed, dict)
        return RecordCodec(parsed)


def read_container(data: bytes, location: str, bytes_max: int = INFLATED_BYTES_MAX_DEFAULT) -> Container:
    """Parse the file. Raises CorruptFileError for a damaged file and for one that is larger than `bytes_max` when
    decompressed (FM-32), UnsupportedFeatureError for an unknown codec."""
    if not data.startswith(_MAGIC):
        raise CorruptFileError(location, "it does not start like an Avro file.")
    try:
        metadata, position = _read_map(data, len(_MAGIC))
        codec = metadata.get("avro.codec", b"null").decode()
        decompress = _DECOMPRESSORS.get(codec)
        if decompress is None:
            raise UnsupportedFeatureError(f"{location}: Avro codec {codec!r} is not supported.")
        sync = data[position : position + _SYNC_BYTES]
        position += _SYNC_BYTES
        if position > len(data):
            raise EOFError("the header is cut off")
        blocks, inflater = [], Inflater(location, bytes_max)
        while position < len(data):
            count, position = _read_long(data, position)
            size, position = _read_long(data, position)
            end = position + size
            if count < 0 or size < 0 or data[end : end + _SYNC_BYTES] != sync:
                raise CorruptFileError(location, f"the Avro block at byte {position} is damaged or cut off.")
            blocks.append((count, decompress(inflater, data[position:end])))
            position = end + _SYNC_BYTES
    except DECODING_ERRORS as error:
        raise_unless_damage(location, error)
        raise CorruptFileError(location, f"it cannot be read as an Avro file ({_wording(error)}).") from error
    return Container(location, metadata, tuple(blocks))


def decode_records(container: Container, codec: RecordCodec) -> list[dict[str, Any]]:
    """All records in file order. Raises CorruptFileError if a block's content differs from its record count."""
    records: list[dict[str, Any]] = []
    for count, block in container.blocks:
        if count > 0:
            records.extend(decode_block(count, block, codec, container.location))
    return records


def decode_block(count: int, block: bytes, codec: RecordCodec, location: str) -> list[dict[str, Any]]:
    """`count` adjacent records, at least one. Raises CorruptFileError for any other content."""
    stream = io.BytesIO(b"".join((_long(count), block, b"\x00")))
    try:
        decoded: Any = fastavro.schemaless_reader(stream, codec.parsed, None)
    except DECODING_ERRORS as error:
        raise_unless_damage(location, error)
        raise CorruptFileError(location, f"its records do not fit its schema ({_wording(error)}).") from error
    if len(decoded["records"]) != count or stream.read(1):
        raise CorruptFileError(location, f"a block of {count} records contains other records.")
    return decoded["records"]  # type: ignore[no-any-return]


def header_bytes(metadata: Mapping[str, str]) -> bytes:
    """Everything before the sync marker. It is the same for all files of a kind, so callers cache it."""
    parts = [_MAGIC, _long(len(metadata) + 1)]
    for name, text in {**metadata, "avro.codec": "deflate"}.items():
        for item in (name.encode(), text.encode()):
            parts += (_long(len(item)), item)
    parts.append(b"\x00")
    return b"".join(parts)


def write_container(header: bytes, codec: RecordCodec, records: Sequence[Mapping[str, Any]]) -> bytes:
    """A container file with `deflate` blocks, the codec that every Avro reader has to support besides `null`."""
    return _framed(header, records, lambda block_records: encode_records(codec, block_records))


def write_encoded_container(header: bytes, records: Sequence[bytes]) -> bytes:
    """The result of `write_container` for records that `encode_records` encoded one by one."""
    return _framed(header, records, b"".join)


def encode_records(codec: RecordCodec, records: Sequence[Mapping[str, Any]]) -> bytes:
    """The concatenated records as in a block before compression; at least one."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, codec.parsed, {"records": records})
    # The encoding of an array is the count, the records and a final zero. A block frames the same records differently.
    return bytes(stream.getbuffer()[len(_long(len(records))) : -1])


def _framed(header: bytes, records: Sequence[_Record], encode: Callable[[Sequence[_Record]], bytes]) -> bytes:
    sync = os.urandom(_SYNC_BYTES)
    parts = [header, sync]
    for start in range(0, len(records), RECORDS_PER_BLOCK):
        of_block = records[start : start + RECORDS_PER_BLOCK]
        compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        block = compressor.compress(encode(of_block)) + compressor.flush()
        parts += (_long(len(of_block)), _long(len(block)), block, sync)
    return b"".join(parts)


def _wording(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _read_map(data: bytes, position: int) -> tuple[dict[str, bytes], int]:
    entries: dict[str, bytes] = {}
    while True:
        count, position = _read_long(data, position)
        if count == 0:
            return entries, position
        if count < 0:
            count = -count
            _, position = _read_long(data, position)
        for _ in range(count):
            name, position = _read_bytes(data, position)
            entries[name.decode()], position = _read_bytes(data, position)


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = _read_long(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise EOFError("cut off")
    return data[position:end], end


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag variable-length integer and the position after it."""
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), position
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _long(value: int) -> bytes:
    """A count or length, never negative, as a zigzag variable-length integer."""
    rest = value << 1
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append((rest & 0x7F) | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


_DECOMPRESSORS: Final[Mapping[str, Callable[[Inflater, bytes], bytes]]] = {
    "null": Inflater.stored,
    "deflate": Inflater.deflate,
    "snappy": Inflater.snappy,
    "zstandard": Inflater.zstandard,
    "bzip2": Inflater.bzip2,
}
