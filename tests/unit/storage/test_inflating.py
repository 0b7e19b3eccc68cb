"""Metadata files whose decompressed content is far larger than the file."""

from __future__ import annotations

import bz2
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import CorruptFileError, UnknownOptionError
from tableformat.metadata.manifests.avro_container import read_container
from tableformat.properties import INFLATED_BYTES_MAX
from tableformat.storage.inflating import Inflater

LIMIT = 10_000_000
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])
LETTERS = b"a" * 6_000_000


def deflated(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-zlib.MAX_WBITS)


def snappy(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="snappy", asbytes=True)) + zlib.crc32(data).to_bytes(4, "big")


def zstandard(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": deflated,
    "snappy": snappy,
    "zstandard": zstandard,
    "bzip2": bz2.compress,
}


def number(value: int) -> bytes:
    """A number in Avro's encoding."""
    rest, encoded = value << 1, bytearray()
    while rest > 0x7F:
        encoded.append((rest & 0x7F) | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


def container(codec: str, blocks: list[bytes]) -> bytes:
    sync = b"s" * 16
    name, text = b"avro.codec", codec.encode()
    parts = [b"Obj\x01", number(1), number(len(name)), name, number(len(text)), text, b"\0", sync]
    for block in blocks:
        packed = CODECS[codec](block)
        parts += [number(1), number(len(packed)), packed, sync]
    return b"".join(parts)


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "null"])
def test_compressed_blocks_share_one_limit(codec: str) -> None:
    """FM-32"""
    blocks = read_container(container(codec, [LETTERS, b"b"]), "a.avro", LIMIT).blocks
    assert blocks == ((1, LETTERS), (1, b"b"))
    with pytest.raises(CorruptFileError, match=r"a\.avro.*10,000,000 bytes"):
        read_container(container(codec, [LETTERS, LETTERS]), "a.avro", LIMIT)


def test_uncompressed_blocks_are_limited_by_file_size() -> None:
    """FM-32"""
    assert len(read_container(container("null", [LETTERS, LETTERS]), "a.avro", LIMIT).blocks) == 2


def test_stated_snappy_size_above_limit_allocates_nothing() -> None:
    """FM-32"""
    with pytest.raises(CorruptFileError, match="its decompressed content is larger"):
        Inflater("a.avro", LIMIT).snappy(b"\xff\xff\xff\xff\x0f" + b"0" * 20)


@pytest.mark.parametrize("cut", [1, 10])
def test_truncated_deflate_block_is_damaged(cut: int) -> None:
    with pytest.raises(EOFError):
        Inflater("a.avro", LIMIT).deflate(deflated(bytes(range(256)) * 1000)[:-cut])


def test_gzip_members_share_one_limit() -> None:
    """FM-32"""
    member = gzip.compress(LETTERS)
    assert Inflater("a", 2 * LIMIT).gunzipped(member * 3) == LETTERS * 3
    with pytest.raises(CorruptFileError):
        Inflater("a", LIMIT).gunzipped(member * 3)


def test_metadata_file_is_limited_by_the_catalog_setting(tmp_path: Path) -> None:
    """FM-32: a table does not set its own."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA)
    table.append(pa.table({"id": [1]}, schema=SCHEMA))
    metadata = json.loads(Path(table.iceberg.metadata_location.removeprefix("file://")).read_text())
    metadata["properties"] |= {"x": "a" * 100_000, INFLATED_BYTES_MAX: "1000000"}
    bomb = tmp_path / "bomb.gz.metadata.json"
    bomb.write_bytes(gzip.compress(json.dumps(metadata).encode()))
    assert tf.read_metadata(str(bomb)).scan().count() == 1
    with pytest.raises(CorruptFileError, match="50,000 bytes"):
        tf.read_metadata(str(bomb), **{INFLATED_BYTES_MAX: "50000"})
    assert INFLATED_BYTES_MAX not in tf.read_metadata(str(bomb)).iceberg.io.properties
    with pytest.raises(UnknownOptionError):
        table.set_properties({INFLATED_BYTES_MAX: "5"})


def test_lake_limit_applies_to_metadata_and_manifest_lists(tmp_path: Path) -> None:
    """FM-32: for metadata files and manifest lists."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, properties={"write.metadata.compression-codec": "gzip"})
    table.append(pa.table({"id": [1]}, schema=SCHEMA))
    with pytest.raises(CorruptFileError, match="its decompressed content is larger"):
        tf.open_catalog(str(tmp_path / "lake"), **{INFLATED_BYTES_MAX: "500"}).load_table("db.t")
    assert tf.open_catalog(str(tmp_path / "lake"), **{INFLATED_BYTES_MAX: "100000"}).load_table("db.t").scan().count()
