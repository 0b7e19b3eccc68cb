"""The container format of Avro files, checked against fastavro's reader and writer."""

from __future__ import annotations

import io
import json
import zlib
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.metadata.manifests.avro_container import (
    RecordCodec,
    decode_records,
    header_bytes,
    read_container,
    write_container,
)

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "pair",
    "fields": [{"name": "number", "type": "long"}, {"name": "text", "type": ["null", "string"]}],
}
SCHEMA_TEXT = json.dumps(SCHEMA)
RECORDS = [{"number": -(2**40), "text": None}, {"number": 7, "text": "seven"}]
CODEC = RecordCodec.of(SCHEMA)


def ours(records: list[dict[str, Any]]) -> bytes:
    return write_container(header_bytes({"avro.schema": SCHEMA_TEXT, "content": "data"}), CODEC, records)


def theirs(codec: str) -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, SCHEMA, RECORDS, codec=codec)
    return stream.getvalue()


def with_codec(codec: str, block: bytes) -> bytes:
    """An Avro file of one block, for codecs that this Python has no Avro writer for."""
    sync = bytes(range(16))
    header = header_bytes({"avro.schema": SCHEMA_TEXT}).replace(
        b"\x0edeflate", bytes([len(codec) * 2]) + codec.encode()
    )
    return header + sync + b"\x04" + bytes([len(block) * 2]) + block + sync


def plain_block() -> bytes:
    stream = io.BytesIO()
    for record in RECORDS:
        fastavro.schemaless_writer(stream, SCHEMA, record)
    return stream.getvalue()


def test_fastavro_reads_what_we_write() -> None:
    reader = fastavro.reader(io.BytesIO(ours(RECORDS)))
    assert reader.metadata["content"] == "data"
    assert list(reader) == RECORDS


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2"])
def test_we_read_what_fastavro_writes(codec: str) -> None:
    assert decode_records(read_container(theirs(codec), "m.avro"), CODEC) == RECORDS


def test_snappy_and_zstandard_blocks_are_read() -> None:
    plain = plain_block()
    compressed = pa.Codec("snappy").compress(plain, asbytes=True) + zlib.crc32(plain).to_bytes(4, "big")
    assert decode_records(read_container(with_codec("snappy", compressed), "m.avro"), CODEC) == RECORDS
    compressed = pa.Codec("zstd").compress(plain, asbytes=True)
    assert decode_records(read_container(with_codec("zstandard", compressed), "m.avro"), CODEC) == RECORDS


def test_a_snappy_block_with_a_wrong_checksum_is_corrupt() -> None:
    compressed = pa.Codec("snappy").compress(plain_block(), asbytes=True) + bytes(4)
    with pytest.raises(CorruptFileError, match=r"m\.avro.*checksum"):
        read_container(with_codec("snappy", compressed), "m.avro")


def test_unknown_codec_is_unsupported_not_corrupt() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"m\.avro.*'brotli'"):
        read_container(with_codec("brotli", plain_block()), "m.avro")


def test_truncation_at_any_byte_is_detected() -> None:
    data = ours(RECORDS)
    end_of_header = data.index(data[-16:]) + 16
    for length in range(len(data)):
        if length == end_of_header:
            continue  # a whole file without blocks
        with pytest.raises(CorruptFileError, match=r"m\.avro"):
            read_container(data[:length], "m.avro")


def test_block_with_wrong_record_count_is_corrupt() -> None:
    data = ours(RECORDS)
    count_at = data.index(data[-16:]) + 16
    fewer = data[:count_at] + b"\x02" + data[count_at + 1 :]
    with pytest.raises(CorruptFileError, match=r"m\.avro"):
        decode_records(read_container(fewer, "m.avro"), CODEC)
    more = data[:count_at] + b"\x06" + data[count_at + 1 :]
    with pytest.raises(CorruptFileError, match="do not fit its schema"):
        decode_records(read_container(more, "m.avro"), CODEC)
