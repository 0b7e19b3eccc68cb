"""A job removes files while another process makes one of them live again: no live file is removed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tableformat as tf
from tableformat.errors import AlreadyCommittedError, AlreadyExistsError
from tableformat.testing.acts import interrupted_by

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])
JOB = """
import pathlib, sys, time
import tableformat as tf
from tableformat.storage import storage
import tableformat.metadata.owned_files as owned_files

lake, directory, job = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
remove = storage.delete_if_present

def wait_once(*arguments):
    if not (directory / "reached").exists():
        (directory / "reached").touch()
        while not (directory / "go").exists():
            time.sleep(0.01)
    remove(*arguments)

owned_files.delete_if_present = wait_once
maintenance = tf.open_catalog(lake).load_table("db.t").maintenance
if job == "expire":
    maintenance.expire_snapshots(retain_last=1, older_than=2**42)
else:
    maintenance.remove_orphan_files()
"""
"""Stops before its first removal, until the test lets it continue."""


def made(directory: Path, version: str = "3", name: str = "db.t") -> tf.Table:
    catalog = tf.open_catalog(str(directory / "lake"))
    if "db" not in catalog.list_namespaces():
        catalog.create_namespace("db")
    return catalog.create_table(name, SCHEMA, key=["id"], properties={"format-version": version})


def data_directory(table: tf.Table) -> Path:
    return Path(table.location.removeprefix("file://")) / "data"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids}, schema=SCHEMA)


def old_file(path: Path, *ids: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(*ids), path)
    os.utime(path, (1, 1))
    return str(path)


def left_file(table: tf.Table, *ids: int) -> str:
    """A data file of the table that left it with all of its rows."""
    table.append(rows(*ids))
    path = next(each for each in table.inspect.files()["file_path"].to_pylist() if each.endswith(".parquet"))
    table.delete(f"id >= {min(ids)}", mode="scan")
    return str(path)


def ids_of(table: tf.Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize(("job", "version"), [("expire", "2"), ("orphans", "3")])
def test_file_added_during_its_removal_is_kept(tmp_path: Path, job: str, version: str) -> None:
    """LK-31: an expired file is added again, and a file that never belonged to the table is adopted in its
    directory."""
    table = made(tmp_path, version)
    path = left_file(table, 1, 2) if job == "expire" else old_file(data_directory(table) / "nightly.parquet", 1, 2)
    table.append(rows(9))
    command = [sys.executable, "-c", JOB, str(tmp_path / "lake"), str(tmp_path), job]
    with subprocess.Popen(command) as other:
        try:
            while not (tmp_path / "reached").exists():
                assert other.poll() is None, "the job removed nothing"
                time.sleep(0.01)
            table.refresh().add_files([path])
        finally:
            (tmp_path / "go").touch()
        assert other.wait(60) == 0
    assert not os.path.exists(path.removeprefix("file://"))
    assert ids_of(table) == [1, 2, 9]
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("is_dead", [False, True])
def test_added_file_of_another_table_survives_its_expiry(tmp_path: Path, is_dead: bool) -> None:
    """LK-31"""
    theirs, ours = made(tmp_path), made(tmp_path, name="db.ours")
    path = left_file(theirs, 1, 2)
    if not is_dead:
        theirs.rollback(snapshot_id=theirs.refresh().metadata.snapshots[0].snapshot_id)
    ours.add_files([path])
    theirs.append(rows(9))
    theirs.maintenance.compact(rewrite_all=True)
    theirs.maintenance.expire_snapshots(retain_last=1, older_than=2**42)
    assert not os.path.exists(path.removeprefix("file://"))
    assert ids_of(ours) == [1, 2]


def test_renamed_file_is_not_added_twice(tmp_path: Path) -> None:
    """LK-10, LK-31: it is rejected, under each of its names, while its rows are in the table."""
    table = made(tmp_path)
    stale = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    path = old_file(data_directory(table) / "a.parquet", 1, 2)
    table.add_files([path])
    named = table.inspect.files()["file_path"].to_pylist()
    for again in (path, *named):
        with pytest.raises(AlreadyExistsError):
            table.add_files([again])
    with pytest.raises(AlreadyExistsError):
        stale.add_files([path])
    table.maintenance.compact(rewrite_all=True)
    for again in (path, *named):
        with pytest.raises(AlreadyExistsError):
            table.add_files([again])
    assert ids_of(table) == [1, 2]
    table.add_files([path], check_duplicate_files=False)
    assert ids_of(table) == [1, 1, 2, 2]


def test_concurrent_additions_of_one_file_commit_once(tmp_path: Path) -> None:
    """CP-23, LK-31: both have looked before one commits."""
    table = made(tmp_path)
    path = old_file(data_directory(table) / "a.parquet", 1, 2)
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    with (
        interrupted_by(lambda: other.add_files([path]) and None),
        pytest.raises(AlreadyCommittedError),
    ):
        table.add_files([path])
    assert ids_of(table) == [1, 2]
    added = [each for each in data_directory(table).iterdir() if each.name != "a.parquet"]
    assert len(added) == 1, "the loser removes its name"


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_added_file_is_hard_linked_if_supported(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """LK-31: otherwise the file is copied. Both are young, regardless of the age of the original file."""

    def no_link(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    if not links:
        monkeypatch.setattr(os, "link", no_link)
    table = made(tmp_path)
    path = old_file(data_directory(table) / "a.parquet", 1, 2)
    table.add_files([path])
    (named,) = (Path(each.removeprefix("file://")) for each in table.inspect.files()["file_path"].to_pylist())
    assert (named.stat().st_ino == os.stat(path).st_ino) is links
    assert time.time() - named.stat().st_mtime < 3600
    os.unlink(path)
    assert ids_of(table) == [1, 2]


def test_added_file_outside_the_table_keeps_its_path(tmp_path: Path) -> None:
    """LK-31"""
    table = made(tmp_path)
    path = old_file(tmp_path / "data" / "a.parquet", 1)
    table.add_files([path])
    assert table.inspect.files()["file_path"].to_pylist() == [path]


def test_failed_commit_removes_linked_files(tmp_path: Path) -> None:
    """LK-31"""
    table = made(tmp_path)
    paths = [old_file(data_directory(table) / f"{name}.parquet", 1) for name in "ab"]
    table.add_check("few", "id < 5")
    bad = old_file(data_directory(table) / "bad.parquet", 7)
    with pytest.raises(tf.TableFormatError):
        table.add_files([*paths, bad])
    assert sorted(each.name for each in data_directory(table).iterdir()) == ["a.parquet", "b.parquet", "bad.parquet"]
