"""The content of metadata files; their snapshots are concatenated from JSON that was written before."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import IcebergBaseModel

import tableformat as tf
from tableformat.commit.metadata_file import metadata_parts

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


def parsed(metadata: TableMetadata, location: str = "00001-a.metadata.json") -> Any:
    content = b"".join(metadata_parts(metadata, location))
    return json.loads(gzip.decompress(content) if location.endswith(".gz.metadata.json") else content)


def whole(metadata: TableMetadata) -> Any:
    """The content as the model serializes it."""
    return json.loads(IcebergBaseModel.model_dump_json(metadata))


@pytest.mark.parametrize("version", [2, 3])
def test_metadata_file_equals_the_model_json(tmp_path: Path, version: int) -> None:
    """Snapshots that are added and that expire, the oldest ones and others; two tables by turns, and a table that is
    loaded again."""
    with new_lake(tmp_path) as catalog:
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


def stored(table: tf.Table) -> Path:
    return Path(table.iceberg.metadata_location.removeprefix("file://"))
