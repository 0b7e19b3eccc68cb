"""Copies of an Iceberg table's metadata with one change each, to find out which readers notice it.

Data and delete files stay the same. Every changed file gets a new name, because readers cache metadata by name.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import fastavro

Record = dict[str, Any]
Change = Callable[[Record], None]

DELETE_MANIFEST = 1
_DELETED = 2


def with_changed_metadata(location: str, change: Change) -> str:
    """The location of a copy of the metadata file after `change` was applied to its JSON object."""
    path = _path(location)
    metadata = json.loads(path.read_text())
    change(metadata)
    copy = path.with_name(f"00099-{uuid.uuid4()}.metadata.json")
    copy.write_text(json.dumps(metadata))
    return f"file://{copy}"


def with_changed_deletes(location: str, change_file: Change, change_schema: Change | None = None) -> str:
    """A copy in which every `data_file` struct in the delete manifests of the current snapshot was changed."""
    snapshot = _current_snapshot(location)

    def change_manifest(manifest: Record) -> None:
        if manifest["content"] == DELETE_MANIFEST:
            copy = _rewrite(
                _path(manifest["manifest_path"]), lambda entry: change_file(entry["data_file"]), change_schema
            )
            manifest["manifest_path"], manifest["manifest_length"] = f"file://{copy}", copy.stat().st_size

    manifest_list = f"file://{_rewrite(_path(snapshot['manifest-list']), change_manifest)}"

    def point_to_list(changed: Record) -> None:
        for each in changed["snapshots"]:
            if each["snapshot-id"] == snapshot["snapshot-id"]:
                each["manifest-list"] = manifest_list

    return with_changed_metadata(location, point_to_list)


def delete_file_paths(location: str) -> set[Path]:
    """The live delete files of the current snapshot, regardless of the content of their entries."""
    manifests = (
        _read(_path(manifest["manifest_path"]))
        for manifest in _read(_path(_current_snapshot(location)["manifest-list"])).records
        if manifest["content"] == DELETE_MANIFEST
    )
    files = (entry["data_file"] for file in manifests for entry in file.records if entry["status"] != _DELETED)
    return {_path(file["file_path"]) for file in files}


def equality_id_types(location: str) -> set[str]:
    """The Avro types of the elements of `equality_ids` in the current snapshot's delete manifests."""
    types = set()
    for manifest in _read(_path(_current_snapshot(location)["manifest-list"])).records:
        if manifest["content"] == DELETE_MANIFEST:
            types.add(_equality_ids(_read(_path(manifest["manifest_path"])).schema)["items"])
    return types


def long_equality_ids(schema: Record) -> None:
    """Declare the elements of `equality_ids` as long, as PyIceberg 0.12 does."""
    _equality_ids(schema)["items"] = "long"


def _equality_ids(schema: Record) -> Record:
    """The Avro array of field 135 in the schema of manifest entries."""
    data_file = next(field for field in schema["fields"] if field["field-id"] == 2)
    equality_ids = next(field for field in data_file["type"]["fields"] if field["field-id"] == 135)
    array: Record = next(kind for kind in equality_ids["type"] if isinstance(kind, dict))
    return array


def _current_snapshot(location: str) -> Record:
    metadata = json.loads(_path(location).read_text())
    snapshot: Record = next(
        each for each in metadata["snapshots"] if each["snapshot-id"] == metadata["current-snapshot-id"]
    )
    return snapshot


@dataclass(frozen=True, slots=True)
class _AvroFile:
    records: list[Record]
    schema: Record
    """The writer's schema as it stands in the header, field ids included."""
    header: dict[str, str]
    """The rest of the header, without Avro's own keys."""


def _read(path: Path) -> _AvroFile:
    with path.open("rb") as source:
        reader = fastavro.reader(source)
        records = cast(list[Record], list(reader))
        header = reader.metadata
    schema = json.loads(header["avro.schema"])
    return _AvroFile(records, schema, {name: text for name, text in header.items() if not name.startswith("avro.")})


def _rewrite(path: Path, change_record: Change, change_schema: Change | None = None) -> Path:
    """A copy of an Avro file with changed records."""
    file = _read(path)
    for record in file.records:
        change_record(record)
    if change_schema is not None:
        change_schema(file.schema)
    copy = path.with_name(f"{uuid.uuid4()}{path.suffix}")
    with copy.open("wb") as target:
        fastavro.writer(target, fastavro.parse_schema(file.schema), file.records, metadata=file.header)
    return copy


def _path(location: str) -> Path:
    return Path(location.removeprefix("file://"))
