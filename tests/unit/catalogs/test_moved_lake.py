"""A lake that was moved or copied, or that is read-only: every entry point reads it and none writes to it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from maintenance_tables import KEYED, keyed_table, rows
from typer.testing import CliRunner

import tableformat as tf
from tableformat.catalogs.read_only_sqlite import connect_read_only
from tableformat.cli.main import app
from tableformat.errors import CopiedLakeError, MovedLakeError, ReadOnlyLakeError, TableFormatError
from tableformat.testing.table_rows import live_tuples

GOLDEN = Path(__file__).parents[2] / "golden" / "lakes"
ROWS = [("a", 0, "x"), ("a", 2, "x")]


def make_lake(directory: Path) -> tf.Table:
    """Create `db.t` with a range delete and positions, and a table that lies outside the lake."""
    table = keyed_table(directory)
    table.append(rows("a", range(3)))
    table.delete("id2 = 1", mode="scan")
    table.delete_prefix({"id1": "b"})
    assert table.catalog is not None
    out = table.catalog.create_table("db.out", KEYED, location=f"file://{directory}/elsewhere/out")
    out.append(rows("o", [1]))
    table.catalog.close()
    return table


def everything(directory: Path) -> dict[str, bytes]:
    """The content of all files except the SQLite files, because SQLite creates and removes its log."""
    return {
        str(path): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and not path.name.startswith("catalog.db")
    }


@pytest.fixture
def moved(tmp_path: Path) -> tf.Catalog:
    make_lake(tmp_path)
    shutil.move(tmp_path / "lake", tmp_path / "new" / "place")
    return tf.open_catalog(str(tmp_path / "new" / "place"))


def check_every_door(lake: Path, table: tf.Table) -> None:
    assert live_tuples(table) == ROWS
    assert table.get(("a", 2)) is not None
    assert table.verify(deep=True).errors == ()
    assert table.maintenance.health().data_file_count == 1
    assert [table.scan(snapshot_id=each.snapshot_id).count() for each in table.metadata.snapshots] == [3, 2, 2]
    assert table.changes().to_arrow().num_rows == 4
    assert table.catalog is not None
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, table.catalog)
        assert connection.sql("SELECT id2 FROM lake.db.t ORDER BY id2").fetchall() == [(0,), (2,)]
    result = CliRunner().invoke(app, ["--catalog", str(lake), "query", "SELECT id2 FROM db.t", "-o", "json"])
    assert sorted(row["id2"] for row in json.loads(result.stdout)["rows"]) == [0, 2]
    path = Path(lake, "db", "t")
    assert live_tuples(tf.read_metadata(path)) == ROWS


CHANGES: dict[str, Callable[[tf.Table], Any]] = {
    "append": lambda table: table.append(rows("b", [1])),
    "delete_prefix": lambda table: table.delete_prefix({"id1": "a"}),
    "create_branch": lambda table: table.create_branch("b"),
    "compact": lambda table: table.maintenance.compact(),
    "expire_snapshots": lambda table: table.maintenance.expire_snapshots(),
    "remove_orphan_files": lambda table: table.maintenance.remove_orphan_files(),
    "purge": lambda table: table.catalog.drop_table(table.name, purge=True),  # type: ignore[union-attr]
    "new_write": lambda table: table.new_write(),
    "PyIceberg's properties": lambda table: table.iceberg.transaction().set_properties(a="b").commit_transaction(),
}


def check_nothing_changes(table: tf.Table, error: type[TableFormatError], watched: Path) -> None:
    before = everything(watched)
    for change in CHANGES.values():
        with pytest.raises(error):
            change(table)
    assert everything(watched) == before


def test_moved_lake_is_read_only(moved: tf.Catalog, tmp_path: Path) -> None:
    """LK-3, LK-4"""
    table = moved.load_table("db.t")
    check_every_door(tmp_path / "new" / "place", table)
    check_nothing_changes(table, MovedLakeError, tmp_path)
    outside = moved.load_table("db.out")
    assert live_tuples(outside) == [("o", 1, "x")]
    check_nothing_changes(outside, MovedLakeError, tmp_path)
    assert not (tmp_path / "lake").exists()


def test_moved_lake_accepts_new_tables_and_drops_old_ones(moved: tf.Catalog, tmp_path: Path) -> None:
    """LK-4"""
    new = moved.create_table("db.new", KEYED, key=["id1", "id2"])
    new.append(moved.load_table("db.t").scan().to_arrow())
    assert (live_tuples(new), new.location) == (ROWS, f"file://{tmp_path}/new/place/db/new")
    moved.drop_table("db.out")
    assert (tmp_path / "elsewhere" / "out" / "metadata").is_dir()
    assert moved.rename_table("db.t", "db.u").scan().count() == 2


def test_copied_lake_reads_its_own_files(tmp_path: Path) -> None:
    """LK-3, LK-4, CP-25: regardless of later changes to the original's files."""
    original = make_lake(tmp_path)
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    original.append(rows("b", [1]))
    with tf.open_catalog(str(tmp_path / "copy")) as copy:
        table = copy.load_table("db.t")
        check_nothing_changes(table, CopiedLakeError, tmp_path)
        check_nothing_changes(copy.load_table("db.out"), MovedLakeError, tmp_path)
        shutil.rmtree(tmp_path / "lake")
        check_every_door(tmp_path / "copy", copy.load_table("db.t"))


def test_copied_catalog_file_alone_reads_original_tables(tmp_path: Path) -> None:
    """LK-3: the files exist in no other location."""
    make_lake(tmp_path)
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "lake" / "catalog.db", tmp_path / "copy")
    with tf.open_catalog(str(tmp_path / "copy")) as copy:
        assert live_tuples(copy.load_table("db.t")) == ROWS
        check_nothing_changes(copy.load_table("db.t"), CopiedLakeError, tmp_path)


def test_lake_location_of_older_version_is_detected_from_files(moved: tf.Catalog, tmp_path: Path) -> None:
    """LK-3: its SQLite file does not state where it was created."""
    moved.close()
    with sqlite3.connect(tmp_path / "new" / "place" / "catalog.db") as connection:
        connection.execute("DROP TABLE tableformat_lake")
    connection.close()
    with tf.open_catalog(str(tmp_path / "new" / "place")) as catalog:
        table = catalog.load_table("db.t")
        assert live_tuples(table) == ROWS
        with pytest.raises(MovedLakeError):
            table.append(rows("b", [1]))


@pytest.mark.parametrize("release", sorted(path.name for path in GOLDEN.iterdir()))
def test_moved_lakes_of_released_versions_are_opened(tmp_path: Path, release: str) -> None:
    """LK-3"""
    shutil.copytree(GOLDEN / release / "lake", tmp_path / "lake")
    expected = json.loads((GOLDEN / release / "expected.json").read_text())
    with tf.open_catalog(str(tmp_path / "lake")) as catalog:
        for name in expected:
            found = catalog.load_table(name).scan().count()
            assert found == tf.read_metadata(tmp_path.joinpath("lake", *name.split("."))).scan().count()


# -- lakes that cannot be written to -----------------------------------------------------------------------------------


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Mounts the lake again, read-only."""
    place = tmp_path / "mounted"
    place.mkdir()
    mounts: list[Path] = []

    def mount() -> Path:
        options = ["-o", "bind"], ["-o", "remount,ro,bind"]
        for each in options:
            if subprocess.run(["mount", *each, tmp_path / "lake", place], capture_output=True, check=False).returncode:
                pytest.skip("this user cannot mount")
            mounts.append(place)
        return place

    yield mount
    if mounts:
        subprocess.run(["umount", place], check=True)


def test_read_only_mounted_lake_is_read(tmp_path: Path, mounted: Callable[[], Path]) -> None:
    """LK-3, LK-5: a mount also changes the location of the lake."""
    make_lake(tmp_path)
    place = mounted()
    before = everything(tmp_path / "lake")
    with tf.open_catalog(str(place)) as catalog:
        table = catalog.load_table("db.t")
        check_every_door(place, table)
        check_nothing_changes(table, ReadOnlyLakeError, tmp_path)
        for change in (
            lambda: catalog.create_namespace("x"),
            lambda: catalog.drop_namespace("db"),
            lambda: catalog.create_table("db.n", KEYED),
            lambda: catalog.rename_table("db.t", "db.u"),
            lambda: catalog.drop_table("db.t"),
            lambda: catalog.register_table("db.v", table.iceberg.metadata_location),
        ):
            with pytest.raises(ReadOnlyLakeError):
                change()
        with tf.open_catalog(str(tmp_path / "lake")) as writer:
            writer.load_table("db.t").append(rows("b", [1]))
            assert catalog.load_table("db.t").scan().count() == 3, "what others commit is seen"
        assert catalog.load_table("db.t").scan().count() == 3
    assert before.items() <= everything(tmp_path / "lake").items()


def test_lake_without_write_permission_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LK-5: the system's answer is the one of another user."""
    make_lake(tmp_path)
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    with tf.open_catalog(str(tmp_path / "lake")) as catalog:
        check_every_door(tmp_path / "lake", catalog.load_table("db.t"))
        check_nothing_changes(catalog.load_table("db.t"), ReadOnlyLakeError, tmp_path)


@pytest.mark.parametrize("left", [(), ("-wal", "-shm"), ("-wal",)])
def test_read_only_lake_with_leftover_wal_files_is_read(
    tmp_path: Path, mounted: Callable[[], Path], left: tuple[str, ...]
) -> None:
    """LK-5: nothing, log and index of a writer that was killed, or a log alone."""
    (tmp_path / "lake").mkdir()
    file = tmp_path / "lake" / "catalog.db"
    script = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1])\n"
        "c.executescript('PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)')\n"
    )
    subprocess.run(["python3", "-c", script + ("os._exit(0)" if left else "c.close()"), file], check=True)
    for suffix in {"-wal", "-shm"} - set(left):
        Path(f"{file}{suffix}").unlink(missing_ok=True)
    place = mounted()
    connection = connect_read_only(str(place / "catalog.db"))
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
    with pytest.raises(sqlite3.OperationalError):
        connection.execute("INSERT INTO t VALUES (2)") if left != ("-wal",) else connect_read_only(f"{file}.not")
    connection.close()
