"""Unreferenced files are removed when they are old; all other files in and around the table stay."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from maintenance_tables import KEYED, another_handle, keyed_table, rows
from new_lakes import new_lake
from pyiceberg.io import FileIO
from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

import tableformat as tf
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.maintenance.expiry.file_prefixes import EqualPrefixes
from tableformat.metadata import owned_files
from tableformat.storage import listing
from tableformat.storage.listing import ListedFile, list_files
from tableformat.testing.table_files import files_on_disk
from tableformat.testing.table_rows import live_tuples

DAYS = 24 * 3600


def local(table: tf.Table) -> Path:
    return Path(table.location.removeprefix("file://"))


def leave(path: Path, *, age_days: float = 9, content: bytes = b"12345") -> str:
    """Create a leftover file; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    moment = time.time() - age_days * DAYS
    os.utime(path, (moment, moment))
    return f"file://{path}"


def age_everything(table: tf.Table) -> None:
    moment = time.time() - 9 * DAYS
    for location in files_on_disk(table):
        os.utime(location.removeprefix("file://"), (moment, moment))


def busy_table(tmp_path: Path) -> tf.Table:
    """Every kind of file that metadata names, all old."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(5)))
    table.delete(where="id2 = 1", mode="scan")
    table.upsert(rows("a", [2], "new"))
    table.create_tag("here")
    table.delete_prefix({"id1": "a", "id2": 4})
    table.create_branch("side")
    age_everything(table)
    return table


def test_file_added_through_a_symlink_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-50: it is listed by another path than metadata has. Other libraries add such files under their names."""
    monkeypatch.setattr("tableformat.operations.verbs.add_files.with_own_names", lambda _, files: tuple(files))
    table = keyed_table(tmp_path / "real")
    table.append(rows("a", range(3)))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    added = local(table) / "data" / "added.parquet"
    pq.write_table(rows("b", range(4)), added)
    table.add_files([str(added).replace(str(tmp_path / "real"), str(tmp_path / "link"))])
    age_everything(table)
    os.utime(added, (0, 0))
    orphan = leave(local(table) / "data" / "dead.parquet")
    result = table.maintenance.remove_orphan_files()
    assert result.orphan_file_locations == (orphan,)
    assert table.refresh().scan().to_arrow().num_rows == 7


def test_only_unreferenced_files_are_removed(tmp_path: Path) -> None:
    """MT-50: a data file of a writer that died, a manifest of a commit that lost; old snapshots keep their files."""
    table = busy_table(tmp_path)
    before, kept = live_tuples(table), files_on_disk(table)
    orphans = {leave(local(table) / "data" / "x" / "dead.parquet"), leave(local(table) / "metadata" / "lost-m0.avro")}
    planned = table.maintenance.remove_orphan_files(dry_run=True)
    assert set(planned.orphan_file_locations) == orphans
    assert files_on_disk(table) == kept | orphans
    result = table.maintenance.remove_orphan_files()
    assert (result.deleted_files_count, result.freed_bytes) == (2, 10)
    assert files_on_disk(table) == kept
    assert live_tuples(table) == before
    assert len(live_tuples(table, tag="here")) == 4


def test_recent_files_are_kept(tmp_path: Path) -> None:
    """MT-51"""
    table = busy_table(tmp_path)
    leave(local(table) / "data" / "young.parquet", age_days=2)
    result = table.maintenance.remove_orphan_files()
    assert (result.deleted_files_count, result.recent_files_count) == (0, 1)
    with pytest.raises(InvalidArgumentError, match="24 hours"):
        table.maintenance.remove_orphan_files(older_than=int(time.time() * 1000))
    moment = 1_700_000_000_000
    at_the_moment = local(table) / "data" / "at.parquet"
    for written_ms, removed in ((moment, 0), (moment - 1, 1)):
        leave(at_the_moment)
        os.utime(at_the_moment, ns=(written_ms * 1_000_000,) * 2)
        assert table.maintenance.remove_orphan_files(older_than=moment).deleted_files_count == removed
    later = int(time.time() * 1000) + 1000
    assert table.maintenance.remove_orphan_files(older_than=later, allow_recent=True).deleted_files_count == 1


def test_catalog_and_unknown_files_are_kept(tmp_path: Path) -> None:
    """MT-50: a table in the catalog's own directory; the catalog's file and everything unknown stay."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", KEYED, key=["id1", "id2"], location=f"file://{tmp_path / 'lake'}")
    table.append(rows("a", [1]))
    age_everything(table)
    kept = {
        leave(tmp_path / "lake" / "notes.txt"),
        leave(tmp_path / "lake" / "other" / "data.parquet"),
        leave(tmp_path / "lake" / "data" / "_temporary" / "part-0.parquet"),
        leave(tmp_path / "lake" / "data" / ".hidden.parquet"),
        leave(tmp_path / "lake" / "metadata" / "version-hint.text"),
    }
    orphan = leave(tmp_path / "lake" / "data" / "_day=3" / "orphan.parquet")
    result = table.maintenance.remove_orphan_files()
    assert result.orphan_file_locations == (orphan,)
    assert set(result.ignored_entries) >= {"catalog.db", "notes.txt", "other"}
    assert kept <= files_on_disk(table)
    assert tf.open_catalog(str(tmp_path / "lake")).load_table("db.t").scan().count() == 1


@pytest.mark.parametrize(
    ("path", "is_own"), [("{}/rows", True), ("{}/rows/", True), ("{}", False), ("{}/..", False), ("{}2", False)]
)
def test_only_data_paths_below_the_location_are_searched(tmp_path: Path, path: str, is_own: bool) -> None:
    """MT-50: not the location itself, and nothing above it: everything in it would be the table's own."""
    table = busy_table(tmp_path)
    location = table.location.rstrip("/")
    named = location.rpartition("/")[0] if path == "{}/.." else path.format(location)
    table.set_properties(**{"write.data.path": named})
    age_everything(table)
    orphan = leave(local(table) / "rows" / "a.parquet")
    assert table.maintenance.remove_orphan_files().orphan_file_locations == ((orphan,) if is_own else ())
    assert (orphan in files_on_disk(table)) is not is_own


def test_nested_table_locations_are_rejected(tmp_path: Path) -> None:
    """MT-52: in both directions."""
    table = busy_table(tmp_path)
    inner = table.catalog.create_table("db.inner", KEYED, location=f"{table.location}/data/inner")
    leave(local(table) / "data" / "dead.parquet")
    for each in (table, inner):
        with pytest.raises(InvalidArgumentError, match="cannot be distinguished from files of"):
            each.maintenance.remove_orphan_files()
    neighbour = table.catalog.create_table("db.t2", KEYED)
    table.catalog.drop_table("db.inner")
    assert neighbour.maintenance.remove_orphan_files().deleted_files_count == 0


def test_nested_table_is_detected_despite_trailing_slash(tmp_path: Path) -> None:
    """MT-52: as other writers leave it."""
    outer = busy_table(tmp_path)
    inner = outer.catalog.create_table("db.inner", KEYED, location=f"{outer.location}/data/inner")
    metadata = local(outer) / "metadata" / "99999-slash.metadata.json"
    metadata.write_text(outer.metadata.model_copy(update={"location": f"{outer.location}/"}).model_dump_json())
    outer.catalog.drop_table("db.t")
    outer.catalog.register_table("db.t", str(metadata))
    with pytest.raises(InvalidArgumentError, match=r"cannot be distinguished from files of db\.t"):
        inner.maintenance.remove_orphan_files()


def test_nested_namespace_tables_are_detected(tmp_path: Path) -> None:
    """MT-52: namespaces are nested, and a listing returns only the top level."""
    table = busy_table(tmp_path)
    for namespace in ("db2", "db2.part", "db2.part.small"):
        table.catalog.create_namespace(namespace)
    inner = table.catalog.create_table("db2.part.small.t", KEYED, location=f"{table.location}/data/inner")
    inner.append(rows("b", range(3)))
    age_everything(inner)
    with pytest.raises(InvalidArgumentError, match=r"cannot be distinguished from files of db2\.part\.small\.t"):
        table.maintenance.remove_orphan_files()
    assert inner.scan().count() == 3


@pytest.mark.parametrize("name", ["write.data.path", "write.object-storage.path", "write.folder-storage.path"])
def test_files_of_another_table_by_path_property_are_kept(tmp_path: Path, name: str) -> None:
    """MT-52: its location is elsewhere, and the files in its metadata look like orphans of the other table."""
    table = busy_table(tmp_path)
    place = f"{table.location}/data/of-the-other"
    other = table.catalog.create_table("db.other", KEYED, properties={"write.data.path": place})
    other.append(rows("b", range(3)))
    other.remove_properties("write.data.path").set_properties({name: place})
    age_everything(table)
    age_everything(other)
    with pytest.raises(InvalidArgumentError, match=f"db.other, whose property {name} is"):
        table.maintenance.remove_orphan_files()
    assert other.scan().count() == 3
    other.maintenance.remove_orphan_files()


def test_unknown_table_metadata_in_the_directory_is_rejected(tmp_path: Path) -> None:
    """MT-52: registered elsewhere, perhaps; its files would all look like orphans."""
    table = busy_table(tmp_path)
    elsewhere = new_lake(tmp_path / "elsewhere")
    foreign = elsewhere.create_table("db.f", KEYED, location=f"{table.location}/data/f")
    foreign.append(rows("f", [1]))
    age_everything(table)
    with pytest.raises(InvalidArgumentError, match="metadata of another table"):
        table.maintenance.remove_orphan_files()
    assert live_tuples(foreign) == [("f", 1, "x")]


def test_copied_table_metadata_is_rejected(tmp_path: Path) -> None:
    """MT-52: a copy of the metadata in another directory references files of the table."""
    table = busy_table(tmp_path)
    shutil.copytree(local(table) / "metadata", local(table) / "data" / "copy" / "metadata")
    age_everything(table)
    with pytest.raises(InvalidArgumentError, match="copy of metadata of this table"):
        table.maintenance.remove_orphan_files()


def test_old_metadata_files_are_removed_and_unreadable_ones_kept(tmp_path: Path) -> None:
    """MT-50, MT-52"""
    table = busy_table(tmp_path)
    logged = (entry.metadata_file for entry in table.metadata.metadata_log)
    named = {Path(location).name for location in (table.iceberg.metadata_location, *logged)}
    text = (local(table) / "metadata" / Path(table.iceberg.metadata_location).name).read_bytes()
    old = leave(local(table) / "metadata" / "00000-lost.metadata.json", content=text)
    broken = leave(local(table) / "metadata" / "00000-broken.metadata.json", content=b"{")
    result = table.maintenance.remove_orphan_files()
    assert result.orphan_file_locations == (old,)
    assert Path(broken.removeprefix("file://")).exists()
    assert {path.name for path in (local(table) / "metadata").iterdir()} >= named


def test_concurrently_committed_file_is_not_an_orphan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-51: listed before it was committed, named after; age alone would not have saved it here."""
    table = busy_table(tmp_path)
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    write = other.new_write()
    staged = write.write(rows("late", [1]))
    age_everything(table)

    def list_then_commit(io: FileIO, location: str) -> list[ListedFile]:
        found = list(list_files(io, location))
        other.commit(write, [staged])
        return found

    monkeypatch.setattr("tableformat.maintenance.expiry.remove_orphan_files.list_files", list_then_commit)
    assert table.maintenance.remove_orphan_files().deleted_files_count == 0
    assert ("late", 1, "x") in live_tuples(table.refresh())


def test_location_argument_must_be_inside_the_table(tmp_path: Path) -> None:
    """MT-50"""
    table = busy_table(tmp_path)
    inside, beside = leave(local(table) / "data" / "p" / "a.parquet"), leave(local(table) / "data" / "q" / "a.parquet")
    result = table.maintenance.remove_orphan_files(location=f"{table.location}/data/p")
    assert result.orphan_file_locations == (inside,)
    assert Path(beside.removeprefix("file://")).exists()
    with pytest.raises(InvalidArgumentError, match="not inside"):
        table.maintenance.remove_orphan_files(location=f"file://{tmp_path}")
    with pytest.raises(InvalidArgumentError, match="not inside"):
        table.maintenance.remove_orphan_files(location=f"{table.location}2")


def test_gc_disabled_table_is_rejected(tmp_path: Path) -> None:
    """MT-52"""
    table = keyed_table(tmp_path, properties={"gc.enabled": "false"})
    with pytest.raises(UnsupportedFeatureError, match=r"gc\.enabled"):
        table.maintenance.remove_orphan_files()


def test_concurrently_disabled_gc_is_respected(tmp_path: Path) -> None:
    """MT-52: the current properties of the table count, not the properties that the handle has loaded."""
    table = busy_table(tmp_path)
    orphan = leave(local(table) / "data" / "dead.parquet")
    another_handle(table).set_properties(**{"gc.enabled": "false"})
    with pytest.raises(UnsupportedFeatureError, match=r"gc\.enabled"):
        table.maintenance.remove_orphan_files()
    assert orphan in files_on_disk(table)


@pytest.mark.parametrize("file_io", [PyArrowFileIO, FsspecFileIO])
def test_all_file_systems_list_the_same_files(tmp_path: Path, file_io: type[FileIO]) -> None:
    expected = {leave(tmp_path / "t" / name): 5 for name in ("a", "d/b", "d/e/c=1")}
    root = f"file://{tmp_path}/t"
    listed = listing._list_with_arrow if file_io is PyArrowFileIO else listing._list_with_fsspec
    found = list(listed(file_io({}), root))
    assert {file.location: file.size_bytes for file in found} == expected
    assert {file.location: file.size_bytes for file in list_files(file_io({}), root + "/")} == expected
    for file in found:
        assert abs(file.modified_ms / 1000 - (time.time() - 9 * DAYS)) < 60
    assert list(list_files(file_io({}), f"{root}/nowhere")) == []


def listed(table: tf.Table, scheme: str, *more: str) -> pa.Table:
    """An inventory of an object store: the files of the table and some more, all old."""
    paths = [each.replace("file:", scheme) for each in (*sorted(files_on_disk(table)), *more)]
    return pa.table({"file_path": paths, "last_modified": pa.array([0] * len(paths), pa.timestamp("us", tz="UTC"))})


def test_given_file_list_is_used(tmp_path: Path) -> None:
    """MT-50: other locations are ignored, and files that the table references stay."""
    table = busy_table(tmp_path)
    elsewhere = leave(tmp_path / "else" / "x.parquet")
    kept = files_on_disk(table)
    orphan = leave(local(table) / "data" / "dead.parquet", age_days=0)
    result = table.maintenance.remove_orphan_files(file_list=listed(table, "file:", elsewhere))
    assert (result.orphan_file_locations, result.freed_bytes) == ((orphan,), 5)
    assert files_on_disk(table) == kept
    assert Path(elsewhere.removeprefix("file://")).exists()
    with pytest.raises(InvalidArgumentError, match="file_list must have the columns"):
        table.maintenance.remove_orphan_files(file_list=pa.table({"file_path": ["a"]}))


def test_given_file_list_with_other_locations_and_missing_times(tmp_path: Path) -> None:
    """MT-50, MT-51: files outside the location stay, as do files without a time in the list."""
    table = busy_table(tmp_path)
    asked, beside, timeless = (
        leave(local(table) / "data" / name) for name in ("p/a.parquet", "q.parquet", "p/b.parquet")
    )
    file_list = pa.table(
        {
            "file_path": [asked, beside, timeless, None, ""],
            "last_modified": pa.array([1, 1, None, 1, 1], pa.timestamp("us", tz="UTC")),
        }
    )
    place = f"{table.location}/data/p"
    assert table.maintenance.remove_orphan_files(location=place, file_list=file_list).orphan_file_locations == (asked,)
    assert {beside, timeless} <= files_on_disk(table)
    for wrong in ({"file_path": ["a"], "last_modified": [1]}, {"file_path": [1], "last_modified": file_list[1][:1]}):
        with pytest.raises(InvalidArgumentError, match="file_list must have the columns"):
            table.maintenance.remove_orphan_files(file_list=pa.table(wrong))


def test_undeletable_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-50: together with a file that is removed and a file that is too young."""
    table = busy_table(tmp_path)
    stays, goes = (leave(local(table) / "data" / name) for name in ("a.parquet", "b.parquet"))
    leave(local(table) / "data" / "young.parquet", age_days=1)
    remove = owned_files.delete_if_present

    def refuse(io: FileIO, location: str) -> Any:
        if location == stays:
            raise OSError("no")
        return remove(io, location)

    monkeypatch.setattr(owned_files, "delete_if_present", refuse)
    result = table.maintenance.remove_orphan_files()
    assert result.undeleted_file_locations == (stays,)
    assert (result.deleted_files_count, result.freed_bytes, result.recent_files_count) == (1, 5, 1)
    assert goes not in files_on_disk(table)


def test_path_scheme_mismatch_stops_the_job_unless_declared_equal(tmp_path: Path) -> None:
    """MT-50: another scheme stops the job, unless the caller states that both are the same."""
    there = [ListedFile(f"{scheme}://a/t/data/{name}", 1, 0) for scheme, name in (("new", "x"), ("new", "y"))]
    named = ["old://a/t/data/x"]

    def unnamed(*options: Any) -> list[str]:
        return [file.location[-1] for file in EqualPrefixes.of(*options).unnamed(there, named)]

    with pytest.raises(InvalidArgumentError, match="different schemes or authorities: old://a and new://a"):
        unnamed(None, None, "ERROR")
    assert unnamed({"older, old": "new"}, None, "error") == unnamed({"new": "old"}, None, "error") == ["y"]
    assert unnamed(None, None, "ignore") == ["y"]
    assert unnamed(None, None, "delete") == ["x", "y"]
    named = ["new://b/t/data/x"]
    with pytest.raises(InvalidArgumentError, match="new://b and new://a"):
        unnamed(None, None, "error")
    assert unnamed(None, {"b": "a"}, "error") == ["y"]
    named = ["new://a/t/data/x", "new://b/t/data/x"]
    assert unnamed(None, None, "error") == unnamed(None, None, "delete") == ["y"]
    there, named = [ListedFile("new://a/t/data/1:x", 1, 0)], ["old://a/t/data/1:x"]
    assert unnamed({"old": "new"}, None, "error") == []
    for options in (({1: "new"}, None, "error"), (None, {"a": 2}, "error")):
        with pytest.raises(InvalidArgumentError, match="text"):
            unnamed(*options)
    for location, spelled in (("s3a://b/t/x", "s3://b/t/x"), ("file:/b/t/x", "///b/t//x")):
        assert not EqualPrefixes().unnamed([ListedFile(location, 1, 0)], [spelled])
    with pytest.raises(InvalidArgumentError, match="one of error, ignore, delete"):
        busy_table(tmp_path).maintenance.remove_orphan_files(prefix_mismatch_mode="none")
