"""The spans of a range delete file as its manifest entry carries them where they are more than a few (RD-13).

    0x00 | zlib( Arrow IPC stream: the table of the range delete file (FM-13), one batch )

A micro-batch replaces a hundred messages, and its delete file is read by every new reader of the table, on an object
store by a request each. Arrow's stream is decoded in a tenth of the time of a Parquet file, many of them as one table,
and zlib's checksum notices a changed bit.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema

from tableformat.deletes.codecs.range_file import spans_from_parquets, spans_to_parquet_table
from tableformat.deletes.rules import committed_sequence_number
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import CorruptFileError
from tableformat.metadata.content_file import DeleteFile

MARK: Final = b"\x00"
"""What the bytes begin with. The other form begins with the number of key columns, which is not 0."""
MAX_SPANS: Final = 4096
MAX_BYTES: Final = 16 * 1024
"""Packed. Entries are read and written again with their manifests, whether a reader needs their spans or not."""
_MAX_UNPACKED_BYTES: Final = 16 * 1024 * 1024
"""What `MAX_BYTES` can become: zlib packs up to a thousand bytes into one."""


def pack_spans(spans: SpanArray) -> bytes | None:
    """The bytes; None where they would be many. The spans state no sequence numbers."""
    if len(spans) > MAX_SPANS:
        return None
    table = spans_to_parquet_table(spans)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    packed = MARK + zlib.compress(sink.getvalue(), level=1)
    return packed if len(packed) <= MAX_BYTES else None


def unpack_spans(deletes: Sequence[DeleteFile], schema: Schema | None) -> list[SpanArray]:
    """RD-8: the numbered spans of each file, with names and types as `spans_from_parquet` gives them. CorruptFileError
    names the file whose bytes make no sense."""
    tables = [_table(delete) for delete in deletes]
    found = spans_from_parquets(tables, [delete.file_path for delete in deletes], schema)
    return [
        spans.with_sequence_number(committed_sequence_number(delete))
        for spans, delete in zip(found, deletes, strict=True)
    ]


def _table(delete: DeleteFile) -> pa.Table:
    packed = delete.range_spans or b""
    try:
        unpacking = zlib.decompressobj()
        stored = unpacking.decompress(packed[len(MARK) :], _MAX_UNPACKED_BYTES)
        if not unpacking.eof:
            raise ValueError("the packed bytes have no end")
        with pa.ipc.open_stream(stored) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (zlib.error, ValueError, OSError, pa.ArrowException) as error:
        raise CorruptFileError(
            delete.file_path, f"its manifest entry carries spans that cannot be read: {error}"
        ) from error
    if len(table) != delete.record_count:
        raise CorruptFileError(
            delete.file_path, f"its manifest entry states {delete.record_count} spans and carries {len(table)}."
        )
    return table
