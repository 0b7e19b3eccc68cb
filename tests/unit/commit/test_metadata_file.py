"""The content of metadata files; their snapshots are concatenated from JSON that was written before."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import IcebergBaseModel

import tableformat as tf
from tableformat.commit import metadata_file, metadata_gzip
from tableformat.commit.metadata_file import metadata_parts

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


def parsed(metadata: TableMetadata, location: str = "00001-a.metadata.json") -> Any:
    content = b"".join(metadata_parts(metadata, location))
    return json.loads(gzip.decompress(content) if location.endswith(".gz.metadata.json") else content)


def whole(metadata: TableMetadata) -> Any:
    """The content as the model serializes it."""
    return json.loads(IcebergBaseModel.model_dump_json(metadata))


@pytest.mark.parametrize("version", [2, 3])
def test_content_is_that_of_the_model(tmp_path: Path, version: int) -> None:
    """Snapshots that are added and that expire, the oldest ones and others; two tables by turns, and a table that is
    loaded again."""
    with tf.open_catalog(str(tmp_path)) as catalog:
        catalog.create_namespace("db")
        properties = {"format-version": str(version), "write.metadata.compression-codec": "none"}
        one, other = (catalog.create_table(f"db.{name}", SCHEMA, key=["id"], properties=properties) for name in "ab")
        assert parsed(one.metadata)["snapshots"] == []
        for number in range(4):
            for table in (one, other):
                table.append([{"id": number}])
                assert parsed(table.metadata) == whole(table.metadata)
        one.create_tag("kept", snapshot_id=one.history()["snapshot_id"][1].as_py())
        one.maintenance.expire_snapshots(retain_last=2, older_than=one.metadata.snapshots[-1].timestamp_ms + 1)
        one.append([{"id": 9}])
        for table in (one, catalog.load_table("db.a"), other):
            assert parsed(table.metadata) == whole(table.metadata)
            assert parsed(table.metadata, "00001-a.gz.metadata.json") == whole(table.metadata)
        assert json.loads(stored(one).read_text()) == whole(one.metadata)
        assert len(one.metadata.snapshots) == 4


def test_a_snapshot_is_serialised_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.open_catalog(str(tmp_path)) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA)
        for number in range(20):
            table.append([{"id": number}])
        serialised: list[int] = []
        dump = Snapshot.model_dump_json

        def counted(snapshot: Snapshot, **options: Any) -> str:
            serialised.append(snapshot.snapshot_id)
            return dump(snapshot, **options)

        monkeypatch.setattr(Snapshot, "model_dump_json", counted)
        table.append([{"id": 20}])
        assert serialised == [table.snapshot_id]


def test_older_snapshots_are_compressed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is one gzip member of the same text, and what it shares with the one before is not deflated again."""
    monkeypatch.setattr(metadata_file, "_RECENT_BYTES_MAX", 4_000)
    deflated: list[int] = []
    blocks = metadata_gzip._blocks

    def counted(text: bytes, level: int) -> bytes:
        deflated.append(len(text))
        return blocks(text, level)

    monkeypatch.setattr(metadata_gzip, "_blocks", counted)
    with tf.open_catalog(str(tmp_path)) as catalog:
        catalog.create_namespace("db")
        properties = {"write.metadata.compression-codec": "gzip"}
        table, other = (catalog.create_table(f"db.{name}", SCHEMA, properties=properties) for name in "ab")
        for number in range(40):
            table.append([{"id": number}])
            other.append([{"id": number}])
            content = stored(table).read_bytes()
            member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
            assert json.loads(member.decompress(content)) == whole(table.metadata)
            assert member.eof
            assert not member.unused_data
        deflated.clear()
        table.append([{"id": 40}])
        text = gzip.decompress(stored(table).read_bytes())
        assert sum(deflated) < len(text) / 2
        table.maintenance.expire_snapshots(retain_last=5, older_than=table.metadata.snapshots[-1].timestamp_ms + 1)
        table.append([{"id": 41}])
        assert json.loads(gzip.decompress(stored(table).read_bytes())) == whole(table.metadata)
        assert catalog.load_table("db.a").scan().count() == 42


def stored(table: tf.Table) -> Path:
    return Path(table.iceberg.metadata_location.removeprefix("file://"))
