"""Puffin files: the container of deletion vectors and of table statistics.

    magic  blob*  magic  footer payload (JSON)  payload size: 4 bytes, little endian  flags: 4 bytes  magic

Source: Puffin specification. PyIceberg does not read compressed footers, check sizes or write Puffin files.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from pyiceberg.io import FileIO

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.storage.inflating import Inflater
from tableformat.storage.outage import raise_unless_damage
from tableformat.storage.storage import open_input

MAGIC: Final = b"PFA1"
DELETION_VECTOR_V1: Final = "deletion-vector-v1"
REFERENCED_DATA_FILE: Final = "referenced-data-file"
CARDINALITY: Final = "cardinality"

_TRAILER: Final = struct.Struct("<i4s4s")
_COMPRESSED_FOOTER: Final = 1
_TAIL_BYTES: Final = 64 * 1024
"""The number of bytes at the end of the file in the first read. A smaller footer needs no second read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobMetadata:
    """A blob in the footer."""

    type: str
    fields: tuple[int, ...]
    """Field ids for which the blob was computed."""
    snapshot_id: int
    """-1 for a deletion vector, because the file is written before its snapshot exists."""
    sequence_number: int
    offset: int
    """Offset of the blob in the file, in bytes."""
    length_bytes: int
    compression_codec: str | None = None
    """None, `lz4` or `zstd`."""
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class PuffinFooter:
    blobs: tuple[BlobMetadata, ...]
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


def read_footer(io: FileIO, location: str, file_size_bytes: int | None = None) -> PuffinFooter:
    """The footer, in one read at the end of the file unless it is large. Raises CorruptFileError, which names the
    file."""
    with open_input(io, location, file_size_bytes) as file:
        size = file.size() if file_size_bytes is None else file_size_bytes
        tail_start = max(0, size - _TAIL_BYTES)
        tail = _read_at(file, tail_start, size - tail_start)
        if len(tail) < _TRAILER.size + len(MAGIC):
            raise CorruptFileError(location, f"{size} bytes are too few for a Puffin file.")
        payload_size_bytes, flags, magic = _TRAILER.unpack_from(tail, len(tail) - _TRAILER.size)
        if magic != MAGIC:
            raise CorruptFileError(
                location, f"the file ends with {magic!r} instead of {MAGIC!r}: it is not a Puffin file."
            )
        footer_size_bytes = len(MAGIC) + payload_size_bytes + _TRAILER.size
        if payload_size_bytes < 0 or footer_size_bytes > size:
            raise CorruptFileError(location, f"the footer states a payload of {payload_size_bytes} bytes.")
        if footer_size_bytes > len(tail):
            tail = _read_at(file, size - footer_size_bytes, footer_size_bytes)
    footer = tail[-footer_size_bytes:]
    if footer[: len(MAGIC)] != MAGIC:
        raise CorruptFileError(location, f"the footer begins with {footer[:4]!r} instead of {MAGIC!r}.")
    return _parse_payload(footer[len(MAGIC) : -_TRAILER.size], flags, location)


def read_blob(
    io: FileIO, location: str, *, offset: int, length_bytes: int, file_size_bytes: int | None = None
) -> bytes:
    """The stored bytes of one blob, in one ranged read. Raises CorruptFileError, which names the file."""
    with open_input(io, location, file_size_bytes) as file:
        blob = _read_at(file, offset, length_bytes) if offset >= 0 <= length_bytes else b""
    if len(blob) != length_bytes:
        raise CorruptFileError(location, f"a blob of {length_bytes} bytes at {offset} is not inside the file.")
    return blob


def encode_puffin(
    blobs: Sequence[tuple[BlobMetadata, bytes]], properties: Mapping[str, str] | None = None
) -> tuple[bytes, PuffinFooter]:
    """A complete file with uncompressed blobs, and its footer: the blobs with their final offsets and lengths."""
    content = bytearray(MAGIC)
    placed = []
    for metadata, blob in blobs:
        if metadata.compression_codec is not None:
            raise UnsupportedFeatureError(
                f"a Puffin blob compressed with {metadata.compression_codec} cannot be written: leave the codec unset."
            )
        placed.append(replace(metadata, offset=len(content), length_bytes=len(blob)))
        content += blob
    footer = PuffinFooter(tuple(placed), dict(properties or {}))
    payload = json.dumps(_footer_json(footer), separators=(",", ":")).encode()
    content += MAGIC + payload + _TRAILER.pack(len(payload), bytes(4), MAGIC)
    return bytes(content), footer


def with_blobs(data: bytes, change: Callable[[BlobMetadata], BlobMetadata], location: str) -> bytes:
    """The same file with another description of its blobs, whose offsets do not change. The footer is not compressed.

    Raises CorruptFileError, with `location` as the name, for a file that is not a Puffin file.
    """
    if len(data) < _TRAILER.size + 2 * len(MAGIC):
        raise CorruptFileError(location, f"{len(data)} bytes are too few for a Puffin file.")
    payload_size_bytes, flags, magic = _TRAILER.unpack_from(data, len(data) - _TRAILER.size)
    footer_start = len(data) - _TRAILER.size - payload_size_bytes - len(MAGIC)
    if magic != MAGIC or payload_size_bytes < 0 or data[max(footer_start, 0) :][: len(MAGIC)] != MAGIC:
        raise CorruptFileError(location, "it does not end like a Puffin file.")
    footer = _parse_payload(data[footer_start + len(MAGIC) : -_TRAILER.size], flags, location)
    payload = json.dumps(
        _footer_json(PuffinFooter(tuple(map(change, footer.blobs)), footer.properties)), separators=(",", ":")
    ).encode()
    return data[:footer_start] + MAGIC + payload + _TRAILER.pack(len(payload), bytes(4), MAGIC)


def deletion_vector_metadata(referenced_data_file: str, cardinality: int) -> BlobMetadata:
    """The footer entry of a deletion vector. `encode_puffin` sets offset and length."""
    return BlobMetadata(
        type=DELETION_VECTOR_V1,
        # The reserved field id of the metadata column `_pos`.
        fields=(2147483645,),
        snapshot_id=-1,
        sequence_number=-1,
        offset=0,
        length_bytes=0,
        properties={REFERENCED_DATA_FILE: referenced_data_file, CARDINALITY: str(cardinality)},
    )


def _read_at(file: pa.NativeFile, offset: int, length_bytes: int) -> bytes:
    file.seek(offset)
    return bytes(file.read(length_bytes))


def _parse_payload(payload: bytes, flags: bytes, location: str) -> PuffinFooter:
    if flags[0] & ~_COMPRESSED_FOOTER or any(flags[1:]):
        raise UnsupportedFeatureError(f"{location}: the Puffin footer has flags {flags.hex()} of a newer format.")
    try:
        if flags[0] & _COMPRESSED_FOOTER:
            payload = Inflater(location).lz4(payload)
        content = json.loads(payload)
        blobs = tuple(_blob_metadata(blob) for blob in content["blobs"])
        return PuffinFooter(blobs, dict(content.get("properties", {})))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise_unless_damage(location, error)
        raise CorruptFileError(location, f"the Puffin footer cannot be read: {error!r}.") from error


def _blob_metadata(blob: Mapping[str, Any]) -> BlobMetadata:
    return BlobMetadata(
        type=blob["type"],
        fields=tuple(blob["fields"]),
        snapshot_id=blob["snapshot-id"],
        sequence_number=blob["sequence-number"],
        offset=blob["offset"],
        length_bytes=blob["length"],
        compression_codec=blob.get("compression-codec"),
        properties=dict(blob.get("properties", {})),
    )


def _footer_json(footer: PuffinFooter) -> dict[str, Any]:
    blobs = []
    for blob in footer.blobs:
        described: dict[str, Any] = {
            "type": blob.type,
            "fields": list(blob.fields),
            "snapshot-id": blob.snapshot_id,
            "sequence-number": blob.sequence_number,
            "offset": blob.offset,
            "length": blob.length_bytes,
        }
        if blob.compression_codec is not None:
            described["compression-codec"] = blob.compression_codec
        if blob.properties:
            described["properties"] = dict(blob.properties)
        blobs.append(described)
    return {"blobs": blobs} | ({"properties": dict(footer.properties)} if footer.properties else {})
