"""Puffin files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table.puffin import PuffinFile

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.metadata.puffin import (
    MAGIC,
    deletion_vector_metadata,
    encode_puffin,
    read_blob,
    read_footer,
)

IO = PyArrowFileIO()


BLOBS = [
    (deletion_vector_metadata("s3://b/a.parquet", 2), b"first"),
    (deletion_vector_metadata("s3://b/b.parquet", 1), b"second!"),
]


def stored(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "x.puffin"
    path.write_bytes(content)
    return str(path)


def test_puffin_blobs_round_trip(tmp_path: Path) -> None:
    content, footer = encode_puffin(BLOBS, {"created-by": "a test"})
    location = stored(tmp_path, content)
    assert read_footer(IO, location, len(content)) == read_footer(IO, location) == footer
    read = [read_blob(IO, location, offset=blob.offset, length_bytes=blob.length_bytes) for blob in footer.blobs]
    assert read == [b"first", b"second!"]
    assert footer.blobs[1].properties == {"referenced-data-file": "s3://b/b.parquet", "cardinality": "1"}


def test_pyiceberg_reads_the_puffin_file() -> None:
    content, _ = encode_puffin(BLOBS)
    foreign = PuffinFile(content)
    assert [foreign.get_blob_payload(blob) for blob in foreign.footer.blobs] == [b"first", b"second!"]
    assert foreign.footer.blobs[0].snapshot_id == -1


def test_a_compressed_footer_is_read(tmp_path: Path) -> None:
    content, footer = encode_puffin(BLOBS)
    payload_size_bytes = int.from_bytes(content[-12:-8], "little")
    payload = content[-12 - payload_size_bytes : -12]
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(payload)
    packed = sink.getvalue().to_pybytes()
    trailer = len(packed).to_bytes(4, "little") + bytes([1, 0, 0, 0]) + MAGIC
    location = stored(tmp_path, content[: -12 - payload_size_bytes] + packed + trailer)
    assert read_footer(IO, location) == footer


def test_compressed_blobs_are_not_written() -> None:
    compressed = replace(BLOBS[0][0], compression_codec="zstd")
    with pytest.raises(UnsupportedFeatureError, match="zstd"):
        encode_puffin([(compressed, b"x")])


CONTENT = encode_puffin(BLOBS)[0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "too few"),
        (CONTENT[:-1] + b"?", "not a Puffin file"),
        (CONTENT[:-12] + b"\xff\xff\xff\x7f" + CONTENT[-8:], "payload of 2147483647"),
        (CONTENT[:-12] + b"\xff\xff\xff\xff" + CONTENT[-8:], "payload of -1"),
        (CONTENT[:-12] + b"\x05\0\0\0" + CONTENT[-8:], "footer begins"),
        (CONTENT.replace(b'"blobs"', b'"slobs"'), "cannot be read"),
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, content: bytes, reason: str) -> None:
    """DA-8"""
    location = stored(tmp_path, content)
    with pytest.raises(CorruptFileError, match=reason) as caught:
        read_footer(IO, location)
    assert caught.value.location == location


def test_unknown_flags_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="02000000"):
        read_footer(IO, stored(tmp_path, CONTENT[:-8] + b"\x02\0\0\0" + MAGIC))


def test_a_blob_outside_of_the_file_and_an_absent_file_are_refused(tmp_path: Path) -> None:
    """DA-8"""
    with pytest.raises(CorruptFileError, match="is not inside"):
        read_blob(IO, stored(tmp_path, CONTENT), offset=len(CONTENT) - 2, length_bytes=10)
    with pytest.raises(CorruptFileError, match="absent"):
        read_footer(IO, str(tmp_path / "absent.puffin"))
