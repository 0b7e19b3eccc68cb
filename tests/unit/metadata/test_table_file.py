"""Metadata files and table directories of any writer."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from foreign_tables import written_here

from tableformat.errors import CorruptFileError, TableNotFoundError, UnsupportedFeatureError
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.table_file import parse_table_metadata, read_table_metadata
from tableformat.storage.relocated_io import RelocatedFileIO
from tableformat.storage.storage import open_input

RELATIVE = written_here("v2_relative").directory


"""A table whose metadata has locations relative to the working directory of its writer."""


STATED = "relative/tables/v2_relative"


NEWEST = f"v{(RELATIVE / 'metadata' / 'version-hint.text').read_text()}.metadata.json"


DOCUMENT: dict[str, Any] = {
    "format-version": 2,
    "table-uuid": "96247900-66da-4f86-9cbe-c81dbcf8420f",
    "location": "s3://b/t",
    "last-sequence-number": 0,
    "last-updated-ms": 1,
    "last-column-id": 1,
    "current-schema-id": 0,
    "schemas": [
        {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "int"}]}
    ],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "properties": {},
    "snapshots": [],
}


def put(path: Path, **changes: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps({**DOCUMENT, **changes}).encode()
    path.write_bytes(gzip.compress(data) if ".gz" in path.name else data)
    return str(path)


def test_a_metadata_file_is_read_plain_or_compressed(tmp_path: Path) -> None:
    for name in ("v1.metadata.json", "00002-abc.gz.metadata.json", "v3.metadata.json.gz"):
        location = put(tmp_path / name)
        metadata, _, found = read_table_metadata(location, {})
        assert (metadata.location, found) == ("s3://b/t", location)


@pytest.mark.parametrize("hint", ["2", "2\n", "v2", "v2.metadata.json"])
def test_version_hint_takes_precedence_over_newer_files(tmp_path: Path, hint: str) -> None:
    for version in (1, 2, 3):
        put(tmp_path / "metadata" / f"v{version}.metadata.json")
    (tmp_path / "metadata" / "version-hint.text").write_text(hint)
    assert read_table_metadata(f"{tmp_path}/", {})[2] == f"{tmp_path}/metadata/v2.metadata.json"


def test_location_without_table_raises_not_found(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        read_table_metadata(str(tmp_path), {})
    with pytest.raises(TableNotFoundError):
        read_table_metadata(f"{tmp_path}/gone.metadata.json", {})


def test_version_hint_to_missing_file_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "version-hint.text").write_text("7")
    with pytest.raises(CorruptFileError, match=r"version-hint\.text.*'7'"):
        read_table_metadata(str(tmp_path), {})


def test_newer_format_version_is_unsupported_not_corrupt() -> None:
    """FM-3."""
    data = json.dumps({**DOCUMENT, "format-version": 4}).encode()
    with pytest.raises(UnsupportedFeatureError, match="format version 4; this library reads up to 3"):
        parse_table_metadata(data, "v1.metadata.json")


def test_unknown_type_is_unsupported_not_corrupt() -> None:
    schema = {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "v", "required": False, "type": "variant"}],
    }
    data = json.dumps({**DOCUMENT, "format-version": 3, "next-row-id": 0, "schemas": [schema]}).encode()
    with pytest.raises(UnsupportedFeatureError, match="variant"):
        parse_table_metadata(data, "v1.metadata.json")


def test_snapshots_without_a_manifest_list_are_refused() -> None:
    snapshot = {"snapshot-id": 1, "timestamp-ms": 1, "manifests": ["m.avro"]}
    with pytest.raises(UnsupportedFeatureError, match="without a manifest list"):
        parse_table_metadata(json.dumps({**DOCUMENT, "snapshots": [snapshot]}).encode(), "v1.metadata.json")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (gzip.compress(b"{}", mtime=0)[:-5], "not JSON"),
        (b"[]", "does not contain a JSON object"),
        (b"{}", "format-version is None"),
        (b'{"format-version": "2"}', "format-version is '2'"),
        (b'{"format-version": true}', "format-version is True"),
        (
            json.dumps({key: DOCUMENT[key] for key in DOCUMENT if key != "location"}).encode(),
            "location: Field required",
        ),
        (json.dumps({**DOCUMENT, "current-schema-id": 5}).encode(), "schema"),
    ],
)
def test_a_damaged_metadata_file_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason) as caught:
        parse_table_metadata(data, "v1.metadata.json")
    assert caught.value.location == "v1.metadata.json"


def test_table_with_relative_locations_is_read_at_its_path() -> None:
    metadata, io, location = read_table_metadata(str(RELATIVE), {})
    assert location == f"{RELATIVE}/metadata/{NEWEST}"
    assert metadata.location == STATED
    view = head_view(metadata, io)
    files = [
        entry.file for manifest in manifests_of(view) for entry in live_entries(read_manifest(io, manifest, metadata))
    ]
    data = [file.file_path for file in files if isinstance(file, DataFile)]
    assert all(path.startswith(STATED) for path in data), "stated paths stay as they are"
    for path in data:
        with open_input(io, path) as file:
            assert file.read(4) == b"PAR1"


def test_table_at_its_stated_location_is_read_directly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = tmp_path / STATED
    shutil.copytree(RELATIVE, stated)
    monkeypatch.chdir(tmp_path)
    _, io, _ = read_table_metadata(os.path.relpath(stated), {})
    assert not isinstance(io, RelocatedFileIO)
    _, io, _ = read_table_metadata(str(RELATIVE / "metadata" / NEWEST), {})
    assert not isinstance(io, RelocatedFileIO), "a copy of the metadata does not move the table"


def test_a_copy_downloaded_from_an_object_store_is_read_without_the_store(tmp_path: Path) -> None:
    shutil.copytree(RELATIVE, tmp_path / "copy")
    latest = tmp_path / "copy" / "metadata" / NEWEST
    latest.write_text(latest.read_text().replace(STATED, "s3://bucket/mytable"))
    metadata, io, _ = read_table_metadata(str(tmp_path / "copy"), {})
    assert isinstance(io, RelocatedFileIO)
    (first, *_) = manifests_of(head_view(metadata, io))
    assert first.manifest_path.startswith(STATED), "only the prefix that the metadata states is exchanged"
