"""Lakes whose metadata is rewritten for another location: every row of every snapshot stays, and the old location is
not mentioned."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from maintenance_tables import KEYED, keyed_table, rows

import tableformat as tf
from tableformat.errors import AlreadyExistsError, InvalidArgumentError, MovedLakeError, UnsupportedFeatureError
from tableformat.metadata.manifests.avro_container import read_container
from tableformat.metadata.reachable_files import reachable_files
from tableformat.storage.location import local_path
from tableformat.testing.table_rows import live_tuples

GOLDEN = Path(__file__).parents[2] / "golden" / "lakes"
ROWS = [("a", 0, "x"), ("a", 2, "x")]
ALL = pytest.param((), marks=pytest.mark.long)
"""Every table of the golden lake; the others are those with the most to rewrite."""


def golden(directory: Path) -> tuple[tf.Catalog, dict[str, Any]]:
    """The lake of the newest release: both format versions, every kind of delete, partitions, evolution, branches."""
    release = max(path.name for path in GOLDEN.iterdir())
    shutil.copytree(GOLDEN / release / "lake", directory)
    return tf.open_catalog(str(directory)), json.loads((GOLDEN / release / "expected.json").read_text())


def words_of(path: Path) -> bytes:
    """The content of a file, decompressed."""
    if path.suffix == ".avro":
        container = read_container(path.read_bytes(), str(path))
        return b"".join(block for _, block in container.blocks)
    if path.suffix == ".parquet":
        return str(pq.read_table(path).to_pylist()).encode() if "deletes" in path.name else b""
    return path.read_bytes()


def files_of(table: tf.Table) -> Iterator[Path]:
    for location in reachable_files(table.metadata, table.iceberg.metadata_location, table.iceberg.io):
        path = local_path(location)
        assert path is not None
        if Path(path).exists():
            yield Path(path)


def check_golden(
    catalog: tf.Catalog, expected: dict[str, Any], names: Sequence[str], root: Path, former: bytes
) -> None:
    from golden_rows import expected_of

    for name in names or expected:
        table = catalog.load_table(name)
        assert expected_of(table) == expected[name]
        found = list(files_of(table))
        assert len(found) > 3
        for path in found:
            assert path.is_relative_to(root), path
            assert former not in words_of(path), path
        assert table.verify(deep=True).errors == ()
        before = table.scan().count()
        table.maintenance.compact()
        table.maintenance.expire_snapshots(dry_run=True)
        assert table.scan().count() == before


def stated_root(catalog: tf.Catalog) -> bytes:
    location = catalog.load_table(catalog.list_tables(catalog.list_namespaces()[0])[0]).location
    return location.removeprefix("file://").rpartition("/")[0].rpartition("/")[0].encode()


@pytest.mark.parametrize("names", [("golden.deletes_v2", "golden.branches_v3"), ALL])
def test_golden_tables_are_relocated_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[str]
) -> None:
    """LK-6, LK-8: every snapshot, branch and tag of every kind of table is read as before, and can be written."""
    monkeypatch.syspath_prepend(GOLDEN.parent)
    catalog, expected = golden(tmp_path / "lake")
    former = stated_root(catalog)
    planned = catalog.relocate(dry_run=True)
    assert planned.dry_run
    with pytest.raises(MovedLakeError):
        catalog.load_table(next(iter(expected))).create_tag("t")
    result = catalog.relocate()
    assert [(each.table, each.rewritten_files_count) for each in result.tables] == [
        (each.table, each.rewritten_files_count) for each in planned.tables
    ]
    assert {each.table for each in result.tables} == set(expected)
    check_golden(catalog, expected, names, tmp_path / "lake", former)
    again = catalog.relocate()
    assert (again.tables, set(again.unchanged_tables)) == ((), set(expected))


@pytest.mark.parametrize("names", [("golden.deletes_v3", "golden.upgraded"), ALL])
def test_golden_tables_are_copied_to_another_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[str]
) -> None:
    """LK-6, LK-7: backup, and restore at another location; the source, which may be a moved lake, stays unchanged."""
    monkeypatch.syspath_prepend(GOLDEN.parent)
    catalog, expected = golden(tmp_path / "lake")
    former = stated_root(catalog)
    planned = catalog.relocate(str(tmp_path / "backup"), dry_run=True)
    assert not (tmp_path / "backup").exists()
    result = catalog.relocate(str(tmp_path / "backup"))
    assert len(result.tables) == len(expected)
    assert [(each.copied_files_count, each.copied_bytes) for each in result.tables] == [
        (each.copied_files_count, each.copied_bytes) for each in planned.tables
    ]
    shutil.rmtree(tmp_path / "lake")
    with tf.open_catalog(str(tmp_path / "backup")) as backup:
        assert backup.relocate(str(tmp_path / "restored"), tables=names).tables
    shutil.rmtree(tmp_path / "backup")
    with tf.open_catalog(str(tmp_path / "restored")) as restored:
        check_golden(restored, expected, names, tmp_path / "restored", former)


def small_lake(directory: Path, *, outside: bool = False) -> tf.Catalog:
    table = keyed_table(directory, properties={"write.data.path": f"file://{directory}/lake/far"})
    table.append(rows("a", range(3)))
    table.delete("id2 = 1", mode="scan")
    assert table.catalog is not None
    if outside:
        table.catalog.create_table("db.out", KEYED, location=f"file://{directory}/elsewhere").append(rows("o", [1]))
    return table.catalog


class StoppedError(Exception):
    pass


def test_interrupted_copy_is_resumed(tmp_path: Path) -> None:
    """LK-7: at the first, a middle and the last step, with torn files left behind."""
    catalog = small_lake(tmp_path)
    catalog.create_namespace("x")
    catalog.create_table("x.t", KEYED).append(rows("a", [1]))
    steps: list[tuple[int, int, str]] = []
    catalog.relocate(str(tmp_path / "whole"), progress=lambda *step: steps.append(step))
    assert {what for *_, what in steps} == {"manifests", "manifest lists", "metadata files"}
    for stop in (0, len(steps) // 2, len(steps) - 1):
        calls = iter(range(stop))

        def stopping(_done: int, _total: int, _what: str, calls: Iterator[int] = calls) -> None:
            if next(calls, None) is None:
                raise StoppedError

        place = tmp_path / f"part{stop}"
        with pytest.raises(StoppedError):
            catalog.relocate(str(place), progress=stopping)
        for path in (place / "x").rglob("*.avro"):
            path.write_bytes(path.read_bytes()[:20])
        result = catalog.relocate(str(place))
        assert len(result.unchanged_tables) + len(result.tables) == 2
        with tf.open_catalog(str(place)) as part:
            assert live_tuples(part.load_table("db.t")) == ROWS
            assert part.load_table("x.t").verify(deep=True).errors == ()
    assert result.unchanged_tables == ("db.t",)
    assert sum(each.present_files_count for each in result.tables) == 1


def test_backup_is_updated_incrementally(tmp_path: Path) -> None:
    """LK-7: files that are there are not copied again, and not written again."""
    catalog = small_lake(tmp_path)
    place = str(tmp_path / "backup")
    catalog.relocate(place)
    table = catalog.load_table("db.t")
    table.append(rows("b", [7]))
    table.delete("id2 = 2", mode="scan")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "backup" / "far").rglob("*.parquet")}
    with pytest.raises(AlreadyExistsError):
        catalog.relocate(place)
    (done,) = catalog.relocate(place, replace=True).tables
    assert (done.copied_files_count, done.present_files_count) == (1, 0)
    assert kept.items() <= {path: path.stat().st_mtime_ns for path in kept}.items()
    with tf.open_catalog(place) as backup:
        found = backup.load_table("db.t")
        assert live_tuples(found) == live_tuples(table)
        assert found.verify(deep=True).errors == ()
        assert len(found.metadata.snapshots) == len(table.metadata.snapshots)
        assert found.properties["write.data.path"] == f"file://{tmp_path}/backup/far"
        backup.drop_table("db.t")
        backup.create_table("db.t", KEYED)
    with pytest.raises(AlreadyExistsError):
        catalog.relocate(place, replace=True)


def test_relocate_requires_a_choice_for_tables_outside(tmp_path: Path) -> None:
    """LK-4, LK-8: whether the lake was moved or copied cannot be seen."""
    small_lake(tmp_path, outside=True).close()
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    shutil.copytree(tmp_path / "lake", tmp_path / "moved")
    with tf.open_catalog(str(tmp_path / "copy")) as copy:
        with pytest.raises(InvalidArgumentError, match=r"db\.out: outside of the lake"):
            copy.relocate()
        assert copy.relocate(outside="forget").forgotten_tables == ("db.out",)
        assert copy.list_tables("db") == ["db.t"]
        copy.load_table("db.t").append(rows("b", [1]))
    shutil.rmtree(tmp_path / "lake")
    with tf.open_catalog(str(tmp_path / "moved")) as moved:
        moved.relocate(outside="keep")
        moved.load_table("db.out").append(rows("o", [2]))
        assert moved.load_table("db.t").scan().count() == 2
        moved.load_table("db.t").append(rows("a", [9]))


def test_copy_includes_tables_and_files_outside_the_lake(tmp_path: Path) -> None:
    """LK-6: the copy has every file that a table references."""
    catalog = small_lake(tmp_path, outside=True)
    pq.write_table(rows("z", [5]), tmp_path / "foreign.parquet")
    out = catalog.load_table("db.out")
    out.iceberg.add_files([f"file://{tmp_path}/foreign.parquet"])
    out.refresh().delete("id1 = 'z'", mode="scan")
    out.append(rows("z", [6]))
    catalog.relocate(str(tmp_path / "backup"))
    shutil.rmtree(tmp_path / "elsewhere")
    (tmp_path / "foreign.parquet").unlink()
    with tf.open_catalog(str(tmp_path / "backup")) as backup:
        table = backup.load_table("db.out")
        assert live_tuples(table) == [("o", 1, "x"), ("z", 6, "x")]
        assert [table.scan(snapshot_id=each.snapshot_id).count() for each in table.metadata.snapshots] == [1, 2, 1, 2]
        assert all(path.is_relative_to(tmp_path / "backup") for path in files_of(table))
        table.append(rows("p", [1]))


def test_copy_drops_path_properties_outside_the_lake(tmp_path: Path) -> None:
    """LK-6: a copy would write to the original's directory."""
    table = keyed_table(tmp_path, properties={"write.data.path": f"file://{tmp_path}/far"})
    table.append(rows("a", [1]))
    assert table.catalog is not None
    table.catalog.relocate(str(tmp_path / "backup"))
    with tf.open_catalog(str(tmp_path / "backup")) as backup:
        copy = backup.load_table("db.t")
        assert "write.data.path" not in copy.properties
        copy.append(rows("a", [2]))
        assert all(path.is_relative_to(tmp_path / "backup") for path in files_of(copy))


def test_invalid_relocations_are_rejected(tmp_path: Path) -> None:
    catalog = small_lake(tmp_path)
    for call, message in (
        (lambda: catalog.relocate(str(tmp_path / "lake")), "already"),
        (lambda: catalog.relocate(replace=True), "replace"),
        (lambda: catalog.relocate(outside="away"), "keep"),  # type: ignore[arg-type]
        (lambda: catalog.relocate(str(tmp_path / "x"), outside="keep"), "outside"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            call()
    with pytest.raises(tf.errors.TableNotFoundError):
        catalog.relocate(str(tmp_path / "x"), tables=["db.u"])
    from pyiceberg.catalog.memory import InMemoryCatalog

    memory = tf.Catalog(InMemoryCatalog("m", warehouse=f"file://{tmp_path}/memory"))
    with pytest.raises(UnsupportedFeatureError, match="in place"):
        memory.relocate()
    memory.create_namespace("db")
    memory.create_table("db.t", KEYED).append(pa.table(rows("a", [1])))
    memory.relocate(str(tmp_path / "of memory"))
    with tf.open_catalog(str(tmp_path / "of memory")) as copy:
        assert copy.load_table("db.t").scan().count() == 1


@pytest.mark.parametrize("is_copied", [False, True])
def test_rows_staged_before_relocation_are_rejected(tmp_path: Path, is_copied: bool) -> None:
    """CP-23: their files are gone, or they belong to the original, which may remove them."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [0]))
    write = table.new_write()
    staged = write.write(rows("a", [2]))
    assert table.catalog is not None
    if is_copied:
        table.catalog.relocate(str(tmp_path / "other"))
        there = tf.open_catalog(str(tmp_path / "other"))
    else:
        shutil.move(tmp_path / "lake", tmp_path / "other")
        there = tf.open_catalog(str(tmp_path / "other"))
        there.relocate()
    other = there.load_table("db.t")
    with pytest.raises(InvalidArgumentError, match=r"were written for db\.t at .*, but the table is now at"):
        other.commit(write, [staged])
    assert live_tuples(other.refresh()) == ROWS[:1]
    assert other.verify(deep=True).is_clean
    if is_copied:
        table.commit(write, [staged])
        assert live_tuples(table) == ROWS
