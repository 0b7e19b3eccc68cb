"""No file outside the table's own directories is ever removed, regardless of the paths in its metadata (MT-53)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from maintenance_tables import keyed_table, rows
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.owned_files import OwnedFiles
from tableformat.storage.location import local_path
from tableformat.testing.table_rows import live_tuples

FUTURE = 10**15
ASKS = "write.metadata.delete-after-commit.enabled"
LOG_OF_ONE = {
    ASKS: "true",
    "write.metadata.previous-versions-max": "1",
}


def victim(tmp_path: Path, name: str = "precious.txt") -> Path:
    path = tmp_path / "home" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    return path


def tampered(table: tf.Table, change: Callable[[dict[str, Any]], None]) -> tf.Table:
    """The table after its current metadata file was changed by hand, read by a catalog that has not seen it before."""
    path = Path(local_path(table.iceberg.metadata_location))
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))
    warehouse = table.iceberg.catalog.properties["warehouse"]
    return tf.open_catalog(warehouse).load_table("db.t")


def metadata_files(table: tf.Table) -> set[str]:
    """The metadata files in the table's directory."""
    return {f"file://{each}" for each in Path(local_path(table.location), "metadata").glob("*.metadata.json")}


def named_metadata(table: tf.Table) -> set[str]:
    """The current metadata file and the one that a log of one entry holds."""
    (logged,) = table.metadata.metadata_log
    return {table.iceberg.metadata_location, logged.metadata_file}


def test_commit_keeps_foreign_file_in_metadata_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """MT-53: the log falls off at one entry, so the next commits would remove the file."""
    table = keyed_table(tmp_path, properties=LOG_OF_ONE)
    table.append(rows("a", [1]))
    path = victim(tmp_path)
    entry = {"metadata-file": f"file://{path}", "timestamp-ms": 1}
    table = tampered(table, lambda metadata: metadata["metadata-log"].insert(0, entry))
    with caplog.at_level(logging.WARNING):
        table.append(rows("a", [2]))
        table.append(rows("a", [3]))
    assert path.read_text() == "mine"
    assert str(path) in caplog.text
    assert metadata_files(table) == named_metadata(table), "logged-out metadata of the table itself still goes"


@pytest.mark.parametrize("is_named", [True, False])
def test_old_metadata_files_are_kept_by_default(tmp_path: Path, is_named: bool) -> None:
    """MT-53: by Iceberg's default it stays."""
    table = keyed_table(tmp_path, properties={**LOG_OF_ONE, ASKS: "false"})
    if not is_named:
        table.remove_properties(ASKS)
    before = metadata_files(table)
    for number in range(3):
        table.append(rows("a", [number]))
        table.iceberg.transaction().set_properties({"by": str(number)}).commit_transaction()
    assert len(metadata_files(table)) == len(before) + 6


def test_pyiceberg_catalog_keeps_foreign_metadata_file(tmp_path: Path) -> None:
    """MT-53: a catalog of PyIceberg that this library did not write."""
    backend = InMemoryCatalog("other", warehouse=f"file://{tmp_path}/lake")
    catalog = tf.Catalog(backend)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", rows("a", [1]).schema, key=["id1", "id2"], properties=LOG_OF_ONE)
    path = victim(tmp_path)
    source = Path(local_path(table.iceberg.metadata_location))
    metadata = json.loads(source.read_text())
    metadata["metadata-log"] = [{"metadata-file": f"file://{path}", "timestamp-ms": 1}]
    source.write_text(json.dumps(metadata))
    table = catalog.load_table("db.t")
    for number in range(3):
        with table.update_schema() as update:
            update.add_column(f"c{number}", LongType())
        table.refresh()
    assert path.read_text() == "mine"
    before = metadata_files(table)
    for number in range(3):
        table.iceberg.transaction().set_properties({"by": str(number)}).commit_transaction()
    assert path.read_text() == "mine"
    assert len(metadata_files(table)) == len(before), "what PyIceberg's own commits log out goes"


def with_foreign_manifest_list(path: Path) -> Callable[[dict[str, Any]], None]:
    def change(metadata: dict[str, Any]) -> None:
        os.rename(local_path(metadata["snapshots"][0]["manifest-list"]), path)
        metadata["snapshots"][0]["manifest-list"] = f"file://{path}"

    return change


def with_foreign_statistics(path: Path) -> Callable[[dict[str, Any]], None]:
    def change(metadata: dict[str, Any]) -> None:
        metadata["statistics"] = [
            {
                "snapshot-id": metadata["snapshots"][0]["snapshot-id"],
                "statistics-path": f"file://{path}",
                "file-size-in-bytes": 4,
                "file-footer-size-in-bytes": 4,
                "blob-metadata": [],
            }
        ]

    return change


FOREIGN = [with_foreign_manifest_list, with_foreign_statistics]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_expiry_keeps_and_reports_foreign_files(tmp_path: Path, foreign: Any) -> None:
    """MT-53"""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    table.append(rows("a", [2]))
    path = victim(tmp_path)
    table = tampered(table, foreign(path))
    for dry_run in (True, False):
        result = table.maintenance.expire_snapshots(older_than=FUTURE, dry_run=dry_run)
        assert result.foreign_file_locations == (f"file://{path}",)
        assert result.undeleted_file_locations == ()
    assert path.exists()
    assert live_tuples(table) == [("a", 1, "x"), ("a", 2, "x")]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_purge_keeps_and_logs_foreign_files(tmp_path: Path, foreign: Any, caplog: pytest.LogCaptureFixture) -> None:
    """MT-53"""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    path = victim(tmp_path)
    table = tampered(table, foreign(path))
    with caplog.at_level(logging.WARNING):
        table.catalog.drop_table("db.t", purge=True)
    assert path.exists()
    assert str(path) in caplog.text
    assert not [name for _, _, names in os.walk(local_path(table.location)) for name in names]


def test_symlinks_do_not_extend_the_table_directory(tmp_path: Path) -> None:
    """MT-53: decided after links are resolved."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    path = victim(tmp_path)
    root = local_path(table.location)
    os.symlink(path.parent, f"{root}/data/elsewhere")
    table = tampered(table, with_foreign_statistics(Path(f"{root}/data/elsewhere/{path.name}")))
    table.catalog.drop_table("db.t", purge=True)
    assert path.exists()


def test_dot_segments_do_not_extend_the_table_directory(tmp_path: Path) -> None:
    """MT-53"""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    path = victim(tmp_path)
    table = tampered(
        table, with_foreign_statistics(Path(f"{local_path(table.location)}/data/../../../../home/{path.name}"))
    )
    table.catalog.drop_table("db.t", purge=True)
    assert path.exists()


def test_lake_behind_a_symlink_is_cleaned(tmp_path: Path) -> None:
    """MT-53: the table's own directory may be reached through a link."""
    (tmp_path / "disk").mkdir()
    os.symlink(tmp_path / "disk", tmp_path / "lake")
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    table.delete(where="id1 = 'a'", mode="scan")
    result = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert (result.deleted_data_files_count, result.foreign_file_locations) == (1, ())
    table.catalog.drop_table("db.t", purge=True)
    assert not [name for _, _, names in os.walk(tmp_path / "disk" / "db") for name in names]


def test_path_property_directories_belong_to_the_table(tmp_path: Path) -> None:
    """MT-53: `write.data.path` and `write.metadata.path` may lie elsewhere; files that look like the table's are
    removed there."""
    paths = {"write.data.path": f"file://{tmp_path}/fast", "write.metadata.path": f"file://{tmp_path}/meta"}
    table = keyed_table(tmp_path, properties={**paths, **LOG_OF_ONE})
    table.append(rows("a", [1]))
    table.delete(where="id1 = 'a'", mode="scan")
    metadata_files = {f"file://{each}" for each in (tmp_path / "meta").glob("*.metadata.json")}
    assert metadata_files == named_metadata(table)
    path = victim(tmp_path / "fast")
    table = tampered(table, with_foreign_statistics(path))
    result = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert (result.deleted_data_files_count, result.deleted_manifest_lists_count) == (1, 1)
    assert result.foreign_file_locations == (f"file://{path}",)
    table.catalog.drop_table("db.t", purge=True)
    assert [name for _, _, names in os.walk(tmp_path / "meta") for name in names] == []
    assert [name for _, _, names in os.walk(tmp_path / "fast") for name in names] == [path.name]


@pytest.mark.parametrize("stated", ["location", "write.data.path"])
@pytest.mark.parametrize("place", ["/", "above", "home"])
def test_metadata_alone_does_not_prove_ownership(tmp_path: Path, stated: str, place: str) -> None:
    """MT-53: the metadata file in the location proves that the location is the table's; a property does not prove it
    for other directories."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    path = victim(tmp_path)
    directory = {"/": "/", "above": str(tmp_path), "home": str(path.parent)}[place]

    def change(metadata: dict[str, Any]) -> None:
        with_foreign_statistics(path)(metadata)
        (metadata if stated == "location" else metadata["properties"])[stated] = directory

    table = tampered(table, change)
    table.catalog.drop_table("db.t", purge=True)
    assert path.exists()


def parquet_like(directory: Path) -> str:
    """A file that begins as the files of a table do."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "a.parquet").write_bytes(b"PAR1 and more")
    return f"file://{directory}/a.parquet"


def owned_by(tmp_path: Path, **stated: str) -> OwnedFiles:
    """The files owned by a table in `db/t` whose metadata file lies elsewhere, so that its location is not proved."""
    table = {"location": f"file://{tmp_path}/db/t", "metadata_location": f"file://{tmp_path}/meta/1.metadata.json"}
    properties = {name.replace("_", "."): value for name, value in stated.items() if name != "location"}
    table |= {name: value for name, value in stated.items() if name == "location"}
    return OwnedFiles(PyArrowFileIO(), **table, table_uuid="0", properties=properties)


def test_parent_directories_do_not_belong_to_the_table(tmp_path: Path) -> None:
    """MT-53: though a property states it."""
    of_another, own = parquet_like(tmp_path / "db" / "other" / "data"), parquet_like(tmp_path / "db" / "t" / "data")
    owned = owned_by(tmp_path, write_data_path=f"file://{tmp_path}/db/")
    assert (owned.has(of_another), owned.has(own)) == (False, True)
    beside = owned_by(tmp_path, write_data_path=f"file://{tmp_path}/db/other/")
    assert (beside.has(of_another), beside.has(own)) == (True, True)


@pytest.mark.parametrize(
    ("location", "is_own"),
    [
        ("s3://bucket/db/t/data/a.parquet", True),
        ("s3a://bucket/db/t/data/a.parquet", True),
        ("s3://bucket/db/t2/data/a.parquet", False),
        ("s3://other/db/t/data/a.parquet", False),
        ("s3://bucket/db/t/data/../../t2/a.parquet", False),
        ("file:///db/t/data/a.parquet", False),
        ("/db/t/data/a.parquet", False),
    ],
)
def test_object_ownership_is_decided_by_key(location: str, is_own: bool) -> None:
    """MT-53"""
    owned = OwnedFiles(
        PyArrowFileIO(),
        location="s3://bucket/db/t",
        metadata_location="s3://bucket/db/t/metadata/1.metadata.json",
        table_uuid="u",
        properties={},
    )
    assert owned.has(location) is is_own


@pytest.mark.parametrize("inside", ["data/../../..", "data/../../../home", "../t2", "data/elsewhere"])
def test_orphan_removal_stays_inside_the_location(tmp_path: Path, inside: str) -> None:
    """MT-53: neither dots nor links lead out of the table's location."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    path = victim(tmp_path)
    os.symlink(path.parent, f"{local_path(table.location)}/data/elsewhere")
    with pytest.raises(InvalidArgumentError, match="not inside the table's location"):
        table.maintenance.remove_orphan_files(
            older_than=FUTURE, allow_recent=True, location=f"{table.location}/{inside}"
        )
    assert path.exists()


def test_symlinked_orphans_are_kept_and_reported(tmp_path: Path) -> None:
    """MT-53: a link among the orphans is reported; it is neither followed nor removed."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    path = victim(tmp_path)
    os.symlink(path, f"{local_path(table.location)}/data/link.parquet")
    result = table.maintenance.remove_orphan_files(older_than=FUTURE, allow_recent=True)
    assert path.exists()
    assert result.foreign_file_locations == (f"{table.location}/data/link.parquet",)
    assert result.deleted_files_count == 0
