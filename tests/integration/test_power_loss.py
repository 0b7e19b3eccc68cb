"""The files of a commit that are on disk before the catalog references them, if the table requests it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from sqlalchemy import event

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.errors import InvalidArgumentError
from tableformat.maintenance.partition_statistics import compute_partition_statistics
from tableformat.metadata.reachable_files import reachable_files
from tableformat.properties import WRITE_SYNC
from tableformat.storage import storage
from tableformat.storage.location import local_path

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
PRAGMA_FULL = 2
ROWS = pa.table({"id": ["a", "a", "b", "c"], "n": [1, 2, 1, 1]})


class Disk:
    """The files and directories that were synced, and when; a file is identified by its inode."""

    def __init__(self) -> None:
        self.synced: set[int] = set()

    def fsync(self, descriptor: int) -> None:
        self.synced.add(os.fstat(descriptor).st_ino)

    def lacks(self, paths: set[Path]) -> list[Path]:
        return sorted(path for path in paths if path.stat().st_ino not in self.synced)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    found = Disk()
    monkeypatch.setattr(storage, "_named_on_disk", set())
    monkeypatch.setattr(os, "fsync", found.fsync)
    return found


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[tf.Catalog]:
    with new_lake(tmp_path / "new" / "lake") as found:
        yield found


def named_files(catalog: tf.Catalog, metadata_location: str) -> set[Path]:
    """Everything that a metadata file names, and itself, in the directories that hold it."""
    table = tf.read_metadata(metadata_location)
    locations = reachable_files(table.metadata, metadata_location, table.iceberg.io)
    # Older metadata files that are logged are not needed to read the table.
    files = {Path(local_path(each) or each) for each in locations if not each.endswith(".metadata.json")}
    files |= {Path(local_path(metadata_location) or metadata_location)}
    return files | {parent for file in files for parent in file.parents}


def staged(table: tf.Table) -> None:
    write = table.new_write(kind="replace", prefix=["id"])
    table.commit(write, [write.write(ROWS), write.write(pa.table({"id": ["z"], "n": [1]}))])


COMMITS: dict[str, Callable[[tf.Table], Any]] = {
    "append": lambda table: table.append(ROWS),
    "replace": lambda table: table.replace(ROWS.slice(0, 2), prefix=["id"]),
    "delete of many prefixes": lambda table: table.delete_prefix(pa.table({"id": list("cdefghijklmno")})),
    "delete by scan": lambda table: table.delete("n = 2", mode="scan"),
    "staged replace": staged,
    "conversion": lambda table: table.maintenance.convert_deletes(),
    "compaction": lambda table: table.maintenance.compact(rewrite_all=True),
    "manifests": lambda table: table.maintenance.rewrite_manifests(),
    "tag": lambda table: table.create_tag("first"),
    "statistics": lambda table: table.maintenance.compute_table_stats(),
    "statistics of partitions": lambda table: compute_partition_statistics(table.iceberg, table.snapshot_id or 0),
    "expiry": lambda table: table.maintenance.expire_snapshots(older_than=timedelta(0)),
}


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("name", COMMITS)
def test_files_and_directories_are_synced_before_the_catalog_swap(
    catalog: tf.Catalog, disk: Disk, monkeypatch: pytest.MonkeyPatch, name: str, version: str
) -> None:
    properties = {WRITE_SYNC: "commit", "format-version": version}
    table = catalog.create_table("db.t", SCHEMA, key=["id", "n"], partition_by=["id"], properties=properties)
    table.append(ROWS)
    table.delete("n = 2", mode="scan")
    table.replace(ROWS, prefix=["id"])
    lacking: list[list[Path]] = []
    modes: list[int] = []
    swap = EmbeddedCatalog.point_to

    def swapping(self: EmbeddedCatalog, swaps: Any, **keywords: Any) -> None:
        lacking.extend(disk.lacks(named_files(catalog, each.location)) for each in swaps)
        swap(self, swaps, **keywords)

    def executing(_connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE"):
            modes.append(cursor.connection.execute("PRAGMA synchronous").fetchone()[0])

    monkeypatch.setattr(EmbeddedCatalog, "point_to", swapping)
    event.listen(catalog.iceberg.engine, "before_cursor_execute", executing)
    COMMITS[name](table)
    assert lacking
    assert [paths for paths in lacking if paths] == []
    assert set(modes) == {PRAGMA_FULL}


def test_table_without_the_property_does_not_sync(catalog: tf.Catalog, disk: Disk) -> None:
    catalog.create_table("db.t", SCHEMA, key=["id", "n"]).append(ROWS)
    assert disk.synced == set()


def test_sync_property_applies_from_the_next_commit(catalog: tf.Catalog, disk: Disk) -> None:
    table = catalog.create_table("db.t", SCHEMA, key=["id", "n"])
    table.set_properties({WRITE_SYNC: "commit"})
    table.append(ROWS)
    assert disk.lacks(named_files(catalog, table.iceberg.metadata_location)) == []
    table.set_properties({WRITE_SYNC: "none"})
    disk.synced.clear()
    table.append(ROWS)
    assert disk.synced == set()


def test_failed_sync_fails_the_commit_and_leaves_no_file(catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = catalog.create_table("db.t", SCHEMA, key=["id", "n"], properties={WRITE_SYNC: "commit"})
    table.append(ROWS)
    directory = Path(local_path(table.location) or "")
    before = sorted(directory.rglob("*"))

    def failing(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="Input/output error"):
        table.append(ROWS)
    assert sorted(directory.rglob("*")) == before
    assert table.refresh().scan().count() == 4


def test_invalid_sync_value_is_rejected(catalog: tf.Catalog) -> None:
    with pytest.raises(InvalidArgumentError, match="none, commit"):
        catalog.create_table("db.t", SCHEMA, properties={WRITE_SYNC: "always"})
