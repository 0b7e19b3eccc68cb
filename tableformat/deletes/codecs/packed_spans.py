"""The form of a range delete file's spans in its manifest entry if they are more than a few (RD-13).

    0x00 | zlib( Arrow IPC stream: the table of the range delete file (FM-13), one batch )

A micro-batch may replace a hundred messages. Without the packed form, every new reader of the table would read its
delete file, with one request to an object store. Arrow's stream is decoded in a tenth of the time of a Parquet file,
and the streams of many files are decoded as one table. The checksum of zlib detects a changed bit.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema

from tableformat.deletes.codecs.range_file import (
    spans_from_parquet,
    spans_of_files,
)
from tableformat.deletes.rules import committed_sequence_number
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import CorruptFileError
from tableformat.metadata.content_file import DeleteFile
from tableformat.storage.outage import raise_unless_damage

MARK: Final = b"\x00"
"""The first byte. The other form begins with the number of key columns, which is not 0."""
MAX_SPANS: Final = 4096
MAX_BYTES: Final = 16 * 1024
"""Maximum packed size. Entries are read and rewritten with their manifests even if no reader needs the spans."""
_MAX_UNPACKED_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of `MAX_BYTES` after unpacking: zlib compresses up to a thousand bytes into one."""
_PREFIX_BYTES: Final = 8
"""Size of the prefix of a message in an Arrow stream: its mark, and the length of its metadata."""
_END: Final = bytes.fromhex("ff ff ff ff 00 00 00 00")
"""The end of an Arrow stream."""


def pack_spans(table: pa.Table) -> bytes | None:
    """The packed bytes of a table of `spans_to_parquet_table` without sequence numbers. None if there are too many
    spans or bytes."""
    if len(table) > MAX_SPANS:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    packed = MARK + zlib.compress(sink.getvalue(), level=1)
    return packed if len(packed) <= MAX_BYTES else None


def unpack_spans(deletes: Sequence[DeleteFile], schema: Schema | None) -> list[tuple[list[int], SpanArray]]:
    """RD-8: the numbered spans of the files, with names and types as in `spans_from_parquet`, and the indexes of their
    files. Files with the same key are concatenated into one array. Raises CorruptFileError, which names the file with
    invalid bytes."""
    streams = [_unpacked(delete) for delete in deletes]
    together = _of_one_key(deletes, streams, schema)
    if together is not None:
        return [(list(range(len(deletes))), together)]
    found = []
    for number, (delete, stream) in enumerate(zip(deletes, streams, strict=True)):
        spans = spans_from_parquet(_table(delete, stream), delete.file_path, schema)
        found.append(([number], spans.with_sequence_number(committed_sequence_number(delete))))
    return found


def _of_one_key(deletes: Sequence[DeleteFile], streams: Sequence[bytes], schema: Schema | None) -> SpanArray | None:
    """The spans of all files, decoded together. None if the files have different keys, or one of them is invalid."""
    joined = _joined(streams)
    if joined is None:
        return None
    counts = [delete.record_count for delete in deletes]
    try:
        with pa.ipc.open_stream(joined) as reader:
            batches = list(reader)
        if [len(batch) for batch in batches] != counts:
            return None
        rows = pa.Table.from_batches(batches)
        rows.validate(full=True)
        spans = spans_of_files(rows, counts, schema)
    except (ValueError, OSError, pa.ArrowException, CorruptFileError):
        return None  # Decoded alone the file raises the error that names it.
    numbers = np.repeat([committed_sequence_number(delete) for delete in deletes], counts)
    return spans.with_sequence_numbers(numbers)


def _joined(streams: Sequence[bytes]) -> bytes | None:
    """One Arrow stream with the batches of all streams; None if their schemas differ.

    schema  batch 0  end          schema  batch 1  end          ->          schema  batch 0  batch 1  end
    """
    schema = streams[0][: _PREFIX_BYTES + int.from_bytes(streams[0][4:_PREFIX_BYTES], "little")]
    if not all(stream.startswith(schema) and stream.endswith(_END) for stream in streams):
        return None
    return b"".join([schema, *(stream[len(schema) : -len(_END)] for stream in streams), _END])


def _unpacked(delete: DeleteFile) -> bytes:
    packed = delete.range_spans or b""
    try:
        unpacking = zlib.decompressobj()
        stream = unpacking.decompress(packed[len(MARK) :], _MAX_UNPACKED_BYTES)
        if not unpacking.eof:
            raise ValueError("the packed bytes have no end")
    except (zlib.error, ValueError) as error:
        raise _unreadable(delete, error) from error
    return stream


def _table(delete: DeleteFile, stream: bytes) -> pa.Table:
    try:
        with pa.ipc.open_stream(stream) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (ValueError, OSError, pa.ArrowException) as error:
        raise_unless_damage(delete.file_path, error)
        raise _unreadable(delete, error) from error
    if len(table) != delete.record_count:
        raise CorruptFileError(
            delete.file_path, f"its manifest entry states {delete.record_count} spans and carries {len(table)}."
        )
    return table


def _unreadable(delete: DeleteFile, error: Exception) -> CorruptFileError:
    return CorruptFileError(delete.file_path, f"its manifest entry carries spans that cannot be read: {error}")
