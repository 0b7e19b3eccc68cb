"""Registering a table that exists as files: the metadata file must be readable, otherwise nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.catalog.sql import SqlCatalog

import tableformat as tf
from tableformat.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InvalidArgumentError,
    TableFormatError,
    TableNotFoundError,
    UnsupportedFeatureError,
)

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture(params=["lake", "sql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Catalog:
    if request.param == "lake":
        opened = tf.open_catalog(tmp_path / "lake")
    else:
        opened = tf.open_catalog(
            "other", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w"
        )
        assert type(opened.iceberg) is SqlCatalog
    opened.create_namespace("db")
    return opened


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "some.metadata.json"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        (None, TableNotFoundError, "table metadata file .* does not exist"),
        ("{}", CorruptFileError, "format-version"),
        ("{", CorruptFileError, "not JSON"),
        (json.dumps({"format-version": 4}), UnsupportedFeatureError, "format version 4"),
    ],
)
def test_registering_invalid_metadata_file_creates_no_table(
    catalog: tf.Catalog, tmp_path: Path, text: str | None, error: type[TableFormatError], told: str
) -> None:
    location = f"{tmp_path}/none.metadata.json" if text is None else written(tmp_path, text)
    with pytest.raises(error, match=told):
        catalog.register_table("db.t", location)
    assert catalog.list_tables("db") == []


def test_unknown_uri_scheme_creates_no_table(catalog: tf.Catalog) -> None:
    with pytest.raises(InvalidArgumentError, match="no FileIO is known for foo: URIs"):
        catalog.register_table("db.t", "foo://x/t.metadata.json")
    with pytest.raises(InvalidArgumentError, match="no FileIO is known for foo: URIs"):
        catalog.create_table("db.t", SCHEMA, location="foo://x/t")
    assert catalog.list_tables("db") == []


def test_add_files_rejects_unknown_uri_scheme(catalog: tf.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    with pytest.raises(InvalidArgumentError, match="no FileIO is known for foo: URIs"):
        table.add_files(["foo://x/part.parquet"])


@pytest.mark.parametrize("spelled", [lambda location: location, lambda location: location.removeprefix("file://")])
def test_registering_a_table_twice_is_rejected(tmp_path: Path, spelled: Callable[[str], str]) -> None:
    """LK-25: commits under one name removed the metadata file that the other one was at, jobs its data files."""
    with new_lake(tmp_path / "lake") as lake:
        lake.create_table("db.other", pa.schema([("id", pa.int64())]))
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        table.append({"id": 1})
        location = spelled(table.iceberg.metadata_location)
        for register in (lake.register_table, lake.iceberg.register_table):
            with pytest.raises(AlreadyExistsError):
                register("db.u", location)
        assert sorted(lake.list_tables("db")) == ["db.other", "db.t"]
        lake.drop_table("db.t")
        assert lake.register_table("db.u", location).scan().count() == 1


def test_dropped_table_is_registered_beside_its_successor(tmp_path: Path) -> None:
    """LK-25: two tables with files in one directory; and a table whose metadata is lost, registered with an older
    metadata file."""
    with new_lake(tmp_path / "lake") as lake:
        dropped = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        older = dropped.append({"id": 1}) and dropped.iceberg.metadata_location
        lake.drop_table("db.t")
        lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        back = lake.register_table("db.old", older)
        assert back.scan().count() == 1
        back.append({"id": 2})
        Path(back.iceberg.metadata_location.removeprefix("file://")).unlink()
        assert lake.register_table("db.older", older).scan().count() == 1


def test_relative_paths_are_made_absolute(catalog: tf.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LK-30: of a metadata file that is registered, and of the location of a new table."""
    monkeypatch.chdir(tmp_path)
    made = catalog.create_table("db.made", SCHEMA, location="somewhere/made")
    made.append([{"id": 1}])
    assert made.location == f"{tmp_path}/somewhere/made"
    location = made.iceberg.metadata_location
    catalog.drop_table("db.made")
    catalog.register_table("db.t", str(Path(location).relative_to(tmp_path)))
    monkeypatch.chdir("/")
    table = catalog.load_table("db.t")
    table.append([{"id": 2}])
    assert table.scan().to_arrow()["id"].to_pylist() == [2, 1]


def test_registering_a_directory_suggests_its_newest_metadata_file(catalog: tf.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append([{"id": 1}])
    catalog.drop_table("db.t")
    with pytest.raises(InvalidArgumentError, match="the newest in the directory") as refused:
        catalog.register_table("db.again", table.location)
    assert table.iceberg.metadata_location.removeprefix("file://") in str(refused.value)
    assert catalog.list_tables("db") == []


def test_moved_table_cannot_be_registered(catalog: tf.Catalog, tmp_path: Path) -> None:
    """No file of such a table could be read; `read_metadata` finds its files next to the metadata."""
    table = catalog.create_table("db.t", SCHEMA)
    table.append([{"id": 1}])
    catalog.drop_table("db.t")
    moved = Path(table.location.removeprefix("file://")).rename(tmp_path / "moved")
    location = moved / "metadata" / Path(table.iceberg.metadata_location).name
    with pytest.raises(InvalidArgumentError, match="was moved or copied") as refused:
        catalog.register_table("db.t", str(location))
    assert table.location in str(refused.value)
    assert tf.read_metadata(location).scan().count() == 1
    assert catalog.list_tables("db") == []
