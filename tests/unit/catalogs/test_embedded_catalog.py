"""The embedded catalog: a directory with a SQLite file."""

from __future__ import annotations

import contextlib
import itertools
import json
import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from commit_tables import SCHEMA, append, data_file, live, metadata_files, new_table, range_delete
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import SetPropertiesUpdate, UpgradeFormatVersionUpdate

from tableformat import Catalog, open_catalog
from tableformat.catalogs import purging
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.errors import CorruptFileError, InvalidArgumentError, UnsupportedFeatureError
from tableformat.testing.table_rows import live_values


@pytest.fixture
def catalog(tmp_path: Path) -> EmbeddedCatalog:
    return EmbeddedCatalog.at(tmp_path / "lake")


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def test_catalog_directory_opens_under_any_name(tmp_path: Path) -> None:
    """FM-2: PyIceberg keys its rows by catalog name."""
    first = EmbeddedCatalog.at(tmp_path / "new" / "lake")
    table = new_table(first)
    assert table.location() == f"file://{tmp_path}/new/lake/db/t"
    assert (tmp_path / "new" / "lake" / "catalog.db").is_file()
    alias = EmbeddedCatalog("prod", **first.properties)
    assert (alias.alias, alias.list_tables("db")) == ("prod", [("db", "t")])
    by_class = load_catalog(
        "x", **{"py-catalog-impl": "tableformat.catalogs.embedded_catalog.EmbeddedCatalog", **first.properties}
    )
    assert by_class.load_table("db.t").metadata == table.metadata


def test_invalid_catalog_path_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="is a file, but a catalog is a directory"):
        EmbeddedCatalog.at(tmp_path / "file")
    with pytest.raises(InvalidArgumentError, match="cannot contain"):
        EmbeddedCatalog.at(tmp_path / "what?")
    assert not (tmp_path / "what?").exists()


@pytest.mark.parametrize("name", ["my lake 100%", "a%20b", "%2Fünï"])
def test_catalog_path_with_special_characters(tmp_path: Path, name: str) -> None:
    """SQLAlchemy gets the path of the catalog file in a URL, in which some characters have a special meaning."""
    table = new_table(EmbeddedCatalog.at(tmp_path / name))
    outcome = commit_change(table, append(data_file(table, "a.parquet", [1, 2])))
    assert outcome.table.scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert (tmp_path / name / "catalog.db").is_file()


def open_and_create(directory: str, number: int) -> None:
    catalog = EmbeddedCatalog.at(directory)
    with contextlib.suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace("db")
    catalog.create_table(f"db.t{number}", SCHEMA)


@pytest.mark.parametrize(
    "start", [threading.Thread, pytest.param(multiprocessing.get_context("spawn").Process, marks=pytest.mark.slow)]
)
def test_concurrent_opening_of_a_new_catalog_directory(tmp_path: Path, start: type[threading.Thread]) -> None:
    workers = [start(target=open_and_create, args=(str(tmp_path / "lake"), number)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    catalog = EmbeddedCatalog.at(tmp_path / "lake")
    assert sorted(catalog.list_tables("db")) == [("db", f"t{number}") for number in range(2)]


def test_forked_child_uses_its_own_connections(catalog: EmbeddedCatalog) -> None:
    new_table(catalog)
    child = os.fork()
    if child == 0:
        inherited = catalog.engine.pool.status()
        os._exit(0 if "Connections in pool: 0" in inherited and catalog.list_tables("db") == [("db", "t")] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert catalog.list_tables("db") == [("db", "t")]


def test_commit_on_a_stale_handle_is_checked_against_the_catalog(catalog: EmbeddedCatalog, tmp_path: Path) -> None:
    table = new_table(catalog)
    other = EmbeddedCatalog.at(tmp_path / "lake")
    commit_change(other.load_table("db.t"), append(data_file(table, "a.parquet")))
    outcome = commit_change(table, append(data_file(table, "b.parquet")))
    assert (outcome.attempts, live(outcome.table)) == (1, {"a.parquet": 1, "b.parquet": 2})


def test_lost_race_leaves_no_metadata_file(catalog: EmbeddedCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-18."""
    table = new_table(catalog)
    files = metadata_files(table)
    write = EmbeddedCatalog._write_metadata

    def write_and_lose(*args: object) -> None:
        write(*args)  # type: ignore[arg-type]
        monkeypatch.undo()
        EmbeddedCatalog.commit_table(catalog, table, (), (SetPropertiesUpdate(updates={"theirs": "1"}),))

    monkeypatch.setattr(EmbeddedCatalog, "_write_metadata", staticmethod(write_and_lose))
    with pytest.raises(CommitFailedException):
        catalog.commit_table(table, (), (SetPropertiesUpdate(updates={"ours": "1"}),))
    kept = catalog.load_table("db.t")
    assert metadata_files(table) - files == {kept.metadata_location.rpartition("/")[2]}
    assert "ours" not in kept.properties


def test_old_metadata_files_are_removed(catalog: EmbeddedCatalog) -> None:
    table = new_table(catalog, properties={"write.metadata.previous-versions-max": "3"})
    for number in range(6):
        outcome = commit_change(table, append(data_file(table, f"{number}.parquet")))
    versions = sorted(name[:5] for name in metadata_files(table) if name.endswith(".metadata.json"))
    assert versions == ["00003", "00004", "00005", "00006"]
    assert [Path(entry.metadata_file).name[:5] for entry in outcome.metadata.metadata_log] == [
        "00003",
        "00004",
        "00005",
    ]


def test_old_metadata_files_are_kept_if_configured(catalog: EmbeddedCatalog) -> None:
    keep = {"write.metadata.previous-versions-max": "1", "write.metadata.delete-after-commit.enabled": "false"}
    table = new_table(catalog, properties=keep)
    for number in range(3):
        commit_change(table, append(data_file(table, f"{number}.parquet")))
    assert sum(name.endswith(".metadata.json") for name in metadata_files(table)) == 4


def test_metadata_compression_codec_is_honoured(catalog: EmbeddedCatalog, tmp_path: Path) -> None:
    table = new_table(catalog, properties={"write.metadata.compression-codec": "gzip"})
    outcome = commit_change(table, append(data_file(table, "a.parquet", [1])))
    assert outcome.metadata_location.endswith(".gz.metadata.json")
    assert local(outcome.metadata_location).read_bytes()[:2] == b"\x1f\x8b"
    reopened = EmbeddedCatalog.at(tmp_path / "lake").load_table("db.t")
    assert reopened.scan().to_arrow()["id"].to_pylist() == [1]
    with pytest.raises(InvalidArgumentError, match="must be none or gzip, not 'zstd'"):
        catalog.commit_table(table, (), (SetPropertiesUpdate(updates={"write.metadata.compression-codec": "zstd"}),))


def test_v3_table_is_created_and_read_by_pyiceberg(catalog: EmbeddedCatalog) -> None:
    table = new_table(catalog, properties={"format-version": "3"})
    document = json.loads(local(table.metadata_location).read_text())
    assert (document["format-version"], document["next-row-id"]) == (3, 0)
    assert "format-version" not in table.properties


def test_v2_table_is_upgraded_to_v3(catalog: EmbeddedCatalog, tmp_path: Path) -> None:
    table = new_table(catalog)
    table = commit_change(table, append(data_file(table, "a.parquet", [1, 2, 3]))).table
    catalog.commit_table(table, (), (UpgradeFormatVersionUpdate.model_validate({"format-version": 3}),))
    table = EmbeddedCatalog.at(tmp_path / "lake").load_table("db.t")
    assert (table.format_version, table.metadata.next_row_id) == (3, 0)  # type: ignore[union-attr]
    outcome = commit_change(table, append(data_file(table, "b.parquet", [4])))
    # Rows from before get ids too: their manifest has none yet.
    assert outcome.metadata.next_row_id == 4  # type: ignore[union-attr]
    assert live_values(outcome.table, "id") == [1, 2, 3, 4]


def test_pyiceberg_transactions_work_on_the_catalog(catalog: EmbeddedCatalog) -> None:
    table = new_table(catalog)
    rows = data_file(table, "a.parquet", [1, 2])
    table.add_files([rows.file_path])
    with table.update_schema() as update:
        update.rename_column("region", "area")
    assert table.metadata.current_snapshot_id is not None
    with table.manage_snapshots() as manage:
        manage.create_tag(table.metadata.current_snapshot_id, "first")
    assert table.scan().to_arrow().column_names == ["id", "area"]
    staged = catalog.create_table_transaction("db.staged", SCHEMA)
    staged.commit_transaction()
    assert catalog.load_table("db.staged").schema().column_names == ["id", "region"]


def test_purge_removes_every_file_of_the_table(catalog: EmbeddedCatalog) -> None:
    """Including range delete files, for which PyIceberg's own purge fails."""
    table = new_table(catalog)
    table = commit_change(table, append(data_file(table, "a.parquet", [1]))).table
    delete = range_delete(table, "r.parquet")
    local(delete.file_path).write_bytes(b"spans")
    commit_change(table, TableChange(operation=Operation.DELETE, added_delete_files=(delete,)))
    catalog.purge_table("db.t")
    assert not local(table.location()).exists(), "empty directories are gone as well"
    assert local(table.location()).parent.exists(), "the namespace's is not the table's"
    with pytest.raises(NoSuchTableError, match=r"db\.t"):
        catalog.load_table("db.t")


@pytest.mark.parametrize("is_ours", [True, False])
def test_purge_removes_concurrently_committed_files(
    catalog: EmbeddedCatalog, monkeypatch: pytest.MonkeyPatch, is_ours: bool
) -> None:
    """MT-53: no remaining metadata references its files, so they would stay for ever."""
    table = new_table(catalog)
    table = commit_change(table, append(data_file(table, "a.parquet", [1]))).table
    listing = purging.files_to_purge
    meanwhile = iter(["b.parquet", "c.parquet"])

    def committing(*arguments: Any, **keywords: Any) -> frozenset[str]:
        found: frozenset[str] = listing(*arguments, **keywords)
        for name in itertools.islice(meanwhile, 1):
            handle = catalog.load_table("db.t")
            commit_change(handle, append(data_file(handle, name, [2])))
        return found

    monkeypatch.setattr(purging, "files_to_purge", committing)
    if is_ours:
        Catalog(catalog).drop_table("db.t", purge=True)
    else:
        catalog.purge_table("db.t")
    assert next(meanwhile, None) is None
    assert not local(table.location()).exists()


def test_purge_is_rejected_if_gc_is_disabled(catalog: EmbeddedCatalog, tmp_path: Path) -> None:
    """MT-65: neither entry point removes the files or the table. Without purge the table is dropped and its files
    stay."""
    table = new_table(catalog, properties={"gc.enabled": "false"})
    commit_change(table, append(data_file(table, "a.parquet", [1])))
    opened = open_catalog(str(tmp_path / "lake"))
    with pytest.raises(UnsupportedFeatureError, match=r"db\.t cannot be purged.*gc\.enabled is false"):
        opened.drop_table("db.t", purge=True)
    with pytest.raises(UnsupportedFeatureError, match=r"gc\.enabled"):
        catalog.purge_table("db.t")
    assert catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1]
    opened.drop_table("db.t")
    assert local(data_file(table, "a.parquet").file_path).is_file()


def test_damaged_metadata_file_is_named(catalog: EmbeddedCatalog, tmp_path: Path) -> None:
    table = new_table(catalog)
    local(table.metadata_location).write_text('{"format-version": 2')
    with pytest.raises(CorruptFileError, match=r"metadata\.json: it is not JSON"):
        EmbeddedCatalog.at(tmp_path / "lake").load_table("db.t")
    local(table.metadata_location).unlink()
    with pytest.raises(CorruptFileError, match=r"metadata\.json: the file does not exist"):
        EmbeddedCatalog.at(tmp_path / "lake").load_table("db.t")


def test_renamed_table_keeps_its_files(catalog: EmbeddedCatalog) -> None:
    table = new_table(catalog)
    commit_change(table, append(data_file(table, "a.parquet", [1])))
    catalog.create_namespace("other")
    renamed = catalog.rename_table("db.t", "other.u")
    assert renamed.scan().to_arrow()["id"].to_pylist() == [1]
    assert catalog.list_tables("db") == []
