"""The readers of bytes from files, each as a function of bytes, and what they read in the lakes of old versions.

A reader returns or raises an error of the library. Parquet's own footer is left to PyArrow, see `notes/reliability.md`.
"""

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import LongType, StringType

import tableformat as tf
from tableformat.deletes.codecs.deletion_vector import MAGIC, decode_positions, decode_vector
from tableformat.deletes.codecs.inline_spans import decode_spans
from tableformat.deletes.codecs.packed_spans import pack_spans
from tableformat.deletes.codecs.position_rows import positions_by_path
from tableformat.deletes.codecs.range_file import FOOTER_KEY, spans_from_parquet, spans_to_parquet_table
from tableformat.deletes.positions import MAX_POSITION
from tableformat.deletes.spans.spans import spans_of_prefixes
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.sort_marker import SORTED_BY, marker_bytes, sorted_by
from tableformat.metadata.content_file import RANGE_DELETES_PARQUET, DeleteFile, FileContent
from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestFile
from tableformat.metadata.manifests.manifest_list import decode_manifest_list
from tableformat.metadata.manifests.manifest_reader import decode_manifest
from tableformat.metadata.puffin import BlobMetadata, read_blob, read_footer
from tableformat.metadata.table_file import parse_table_metadata
from tableformat.storage.location import local_path

IO: Final = PyArrowFileIO()
LAKES: Final = Path(__file__).parents[1] / "golden" / "lakes"
WHERE: Final = "fuzzed"


@dataclass(frozen=True)
class Target:
    """A reader, and bytes that it reads."""

    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]


@cache
def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    """Removed with the process."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(
        prefix="fuzz-", dir=memory if memory.is_dir() else None, ignore_cleanup_errors=True
    )


def scratch_file() -> Path:
    return Path(scratch_directory().name, "file")


def as_file(data: bytes) -> str:
    scratch_file().write_bytes(data)
    return f"file://{scratch_file()}"


def golden(pattern: str, table: str = "*") -> list[bytes]:
    """Files of all lakes, the smallest first: they say the most for a byte."""
    return sorted((path.read_bytes() for path in LAKES.glob(f"*/lake/golden/{table}/{pattern}")), key=len)[:20]


@cache
def golden_metadata() -> TableMetadata:
    newest = max(LAKES.glob("*/lake/golden/branches_v2/metadata/*.metadata.json"))
    return tf.read_metadata(str(newest)).metadata


# -- readers -----------------------------------------------------------------------------------------------------------


def read_manifest(data: bytes) -> object:
    """A manifest of deletes and one of data; the first byte is which."""
    content = ManifestContent.DELETES if data[:1] < b"\x80" else ManifestContent.DATA
    manifest = ManifestFile(
        manifest_path=as_file(data[1:]),
        manifest_length_bytes=len(data) - 1,
        partition_spec_id=0,
        content=content,
        sequence_number=9,
        min_sequence_number=1,
        added_snapshot_id=1,
        added_files_count=1,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=1,
        existing_rows_count=0,
        deleted_rows_count=0,
    )
    return decode_manifest(IO, manifest, golden_metadata())


def read_puffin(data: bytes) -> object:
    location = as_file(data)
    return [blob_of(location, blob) for blob in read_footer(IO, location).blobs]


def blob_of(location: str, blob: BlobMetadata) -> bytes:
    return read_blob(IO, location, offset=blob.offset, length_bytes=blob.length_bytes)


def read_inline_spans(data: bytes) -> object:
    delete = DeleteFile(
        content=FileContent.EQUALITY_DELETES,
        file_path=WHERE,
        file_format=RANGE_DELETES_PARQUET,
        spec_id=0,
        record_count=1,
        file_size_bytes=1,
        sequence_number=3,
        equality_ids=(1, 2),
        range_spans=data,
    )
    return decode_spans([delete], golden_metadata().schema())


def read_vector_of_right_checksum(data: bytes) -> object:
    framed = MAGIC + data
    return decode_vector(struct.pack(">I", len(framed)) + framed + struct.pack(">I", zlib.crc32(framed)), WHERE)


def read_range_rows(data: bytes) -> object:
    """The statement of the footer up to the first zero byte, and values of the columns after it."""
    statement, _, values = data.partition(b"\0")
    table = pq.read_table(range_files()[0])
    columns = [_overwritten(column.combine_chunks(), values) for column in table.columns]
    schema = table.schema.with_metadata({FOOTER_KEY: statement})
    return spans_from_parquet(pa.Table.from_arrays(columns, schema=schema), WHERE, golden_metadata().schema())


def read_position_rows(data: bytes) -> object:
    positions = np.frombuffer(data[: len(data) // 8 * 8], np.int64)
    paths = [("a", "b", "\ud7ff")[byte % 3] for byte in data[: len(positions)]]
    if (positions < 0).any() or (positions > MAX_POSITION).any():
        with pytest.raises(ValueError, match=r"negative|above"):  # Its callers name the file.
            positions_by_path(pa.table({"file_path": pa.array(paths, pa.string()), "pos": positions}))
        return None
    return positions_by_path(pa.table({"file_path": pa.array(paths, pa.string()), "pos": positions}))


def _overwritten(column: pa.Array, values: bytes) -> pa.Array:
    """The column with the first bytes of its values changed, where it has values of fixed width."""
    has_fixed_width = pa.types.is_primitive(column.type) and not pa.types.is_boolean(column.type)
    if not has_fixed_width or not values:
        return column
    buffers = column.buffers()
    changed = bytearray(buffers[1].to_pybytes())
    changed[: len(values)] = values[: len(changed)]
    return pa.Array.from_buffers(column.type, len(column), [buffers[0], pa.py_buffer(bytes(changed))])


# -- seeds -------------------------------------------------------------------------------------------------------------


@cache
def range_files() -> tuple[Path, ...]:
    return tuple(sorted(LAKES.glob("*/lake/golden/deletes_v*/data/*-range-deletes.parquet")))


def statements() -> list[bytes]:
    """Of the file whose rows `read_range_rows` takes."""
    return [pq.read_schema(range_files()[0]).metadata[FOOTER_KEY] + b"\0"]


def vectors() -> list[bytes]:
    locations = [f"file://{path}" for path in LAKES.glob("*/lake/golden/*/data/*.puffin")]
    found = [blob_of(location, blob) for location in locations for blob in read_footer(IO, location).blobs]
    return sorted(found, key=len)[:20]


def inline_spans() -> list[bytes]:
    few = [each for each in _inline_spans() if each is not None]
    key = KeyColumns((1, 2), ("id1", "id2"), (StringType(), LongType()))
    prefixes = pa.table({"id1": ["A"], "id2": [3]})
    packed = [
        pack_spans(spans_to_parquet_table(spans_of_prefixes(key, prefixes.select(names))))
        for names in (["id1"], ["id1", "id2"])
    ]
    return few + [each for each in packed if each is not None]


def _inline_spans() -> Iterator[bytes | None]:
    for path in LAKES.glob("*/lake/golden/branches_v*/metadata/snap-*.avro"):
        for manifest in decode_manifest_list(IO, f"file://{path}"):
            if manifest.content is ManifestContent.DELETES:
                moved = path.parent / (local_path(manifest.manifest_path) or manifest.manifest_path).rpartition("/")[2]
                if moved.exists():
                    read = ManifestFile(**{**_fields(manifest), "manifest_path": f"file://{moved}"})
                    for entry in decode_manifest(IO, read, golden_metadata()):
                        yield getattr(entry.file, "range_spans", None)


def _fields(manifest: ManifestFile) -> dict[str, object]:
    return {name: getattr(manifest, name) for name in manifest.__dataclass_fields__} | {"partition_spec_id": 0}


def manifests() -> list[bytes]:
    """Each as what it is."""
    return [
        (b"\x00" if b"content\x0edeletes" in data else b"\xff") + data
        for data in golden("metadata/*-m?.avro", "branches_v*")
    ]


TARGETS: Final = {
    "deletion vector": Target(lambda data: decode_vector(data, WHERE), vectors),
    "bitmap": Target(lambda data: decode_positions(data, WHERE), lambda: [blob[8:-4] for blob in vectors()]),
    "vector of right checksum": Target(read_vector_of_right_checksum, lambda: [blob[8:-4] for blob in vectors()]),
    "puffin": Target(read_puffin, lambda: golden("data/*.puffin")),
    "position rows": Target(read_position_rows, lambda: [np.arange(6).tobytes()]),
    "range rows": Target(read_range_rows, statements),
    "inline spans": Target(read_inline_spans, inline_spans),
    "sort marker": Target(lambda data: sorted_by({SORTED_BY: data}), lambda: [marker_bytes([1, 2])]),
    "manifest": Target(read_manifest, manifests),
    "manifest list": Target(
        lambda data: decode_manifest_list(IO, as_file(data)), lambda: golden("metadata/snap-*.avro")
    ),
    "table metadata": Target(
        lambda data: parse_table_metadata(data, WHERE), lambda: golden("metadata/*.metadata.json")
    ),
}
