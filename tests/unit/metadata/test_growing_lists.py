"""Metadata files are parsed with the items that are known from earlier files of the table."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.exceptions import ValidationError
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.typedef import IcebergBaseModel

from tableformat.commit.metadata_file import metadata_parts
from tableformat.metadata.growing_lists import parse_metadata

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])
TRICKY = {"note": '","snapshots":[{"snapshot-id":1}],"snapshot-log":[', "snapshots": "[]"}


def written(metadata: TableMetadata) -> bytes:
    return b"".join(metadata_parts(metadata, "00001-a.metadata.json"))


def check_parsed(document: bytes) -> TableMetadata:
    expected = TableMetadataUtil.parse_raw(document.decode())
    found = parse_metadata(document)
    assert found == expected
    assert IcebergBaseModel.model_dump_json(found) == IcebergBaseModel.model_dump_json(expected)
    return found


@pytest.mark.parametrize("version", [2, 3])
def test_files_of_several_writers_are_parsed_like_single_files(tmp_path: Path, version: int) -> None:
    """Known items at the start, in the middle and nowhere; items that others added, removed, changed and reordered."""
    draw = random.Random(version)
    properties = {"format-version": str(version), **TRICKY}
    with new_lake(tmp_path) as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["id"], properties=properties)
        documents = [written(table.metadata)]
        for number in range(12):
            table.append([{"id": number}])
            if number % 5 == 4:
                moment = table.metadata.snapshots[-1].timestamp_ms + 1
                table.maintenance.expire_snapshots(retain_last=3, older_than=moment)
            documents.append(written(table.metadata))
        for document in draw.choices(documents, k=60):
            check_parsed(changed(document, draw))
        assert check_parsed(documents[-1]).properties["note"] == TRICKY["note"]


def changed(document: bytes, draw: random.Random) -> bytes:
    """The same metadata as another writer may write it."""
    content: dict[str, Any] = json.loads(document)
    snapshots, log = content["snapshots"], content["snapshot-log"]
    match draw.randrange(6):
        case 0 if snapshots:
            del snapshots[draw.randrange(len(snapshots))]
        case 1:
            draw.shuffle(snapshots)
        case 2 if snapshots:
            draw.choice(snapshots)["summary"]["added-records"] = "77"
        case 3:
            content["snapshot-log"] = log[len(log) // 2 :]
        case 4:
            return json.dumps(content, indent=draw.choice([None, 2])).encode()
        case _:
            return document
    return json.dumps(content, separators=(",", ":")).encode()


def test_items_that_are_known_are_the_same_objects(tmp_path: Path) -> None:
    """From the second file of a table on. This is what saves the time."""
    with new_lake(tmp_path) as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["id"])
        table.append([{"id": 1}])
        first = parse_metadata(written(table.metadata))
        table.append([{"id": 2}])
        document = written(table.metadata)
        second = parse_metadata(document)
        assert second.snapshots[0] is table.metadata.snapshots[0]
        assert first == parse_metadata(written(first))
        assert second == TableMetadataUtil.parse_raw(document.decode())


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format-version":2}'])
def test_what_is_no_metadata_raises_the_error_of_pyiceberg(damage: bytes) -> None:
    with pytest.raises((ValidationError, ValueError)):
        parse_metadata(damage)
