"""A lake that is moved, replaced or removed while a process has it open."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from maintenance_tables import KEYED, keyed_table, rows
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import event

import tableformat as tf
from spark_ext.service.wire.errors import describe_error
from tableformat.catalogs.relocate_lake import relocate_to
from tableformat.commit.snapshot_producer import SnapshotProducer
from tableformat.errors import CopiedLakeError, StorageError, TableFormatError
from tableformat.testing.table_rows import live_tuples

GONE = r"catalog file .*catalog\.db does not exist: the lake was moved or removed .*Nothing was changed\. Open"


def opened_anew(place: Path) -> tf.Table:
    return tf.open_catalog(str(place)).load_table("db.t")


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    """`db.t` with a row, in a lake that stays open."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    return table


def replace_by_copy(directory: Path) -> None:
    shutil.copytree(directory / "lake", directory / "copy")
    (directory / "lake").rename(directory / "former")
    (directory / "copy").rename(directory / "lake")


CALLS: dict[str, Callable[[tf.Catalog], Any]] = {
    "load": lambda catalog: catalog.load_table("db.t"),
    "exists": lambda catalog: catalog.table_exists("db.t"),
    "list": lambda catalog: catalog.list_tables(),
    "list views": lambda catalog: catalog.list_views(),
    "create namespace": lambda catalog: catalog.create_namespace("x"),
    "drop namespace": lambda catalog: catalog.drop_namespace("db"),
    "create": lambda catalog: catalog.create_table("db.n", KEYED),
    "rename": lambda catalog: catalog.rename_table("db.t", "db.u"),
    "drop": lambda catalog: catalog.drop_table("db.t"),
    "purge": lambda catalog: catalog.drop_table("db.t", purge=True),
    "drop view": lambda catalog: catalog.drop_view("db.v"),
    "register": lambda catalog: catalog.register_table("db.v", "/somewhere/00000-a.metadata.json"),
    "relocate": lambda catalog: catalog.relocate(),
}


CHANGES: dict[str, Callable[[tf.Table], Any]] = {
    "append": lambda table: table.append(rows("b", [1])),
    "upsert": lambda table: table.upsert(rows("a", [1], "y")),
    "delete_prefix": lambda table: table.delete_prefix({"id1": "a"}),
    "branch": lambda table: table.create_branch("b"),
    "properties": lambda table: table.set_properties({"a": "b"}),
    "compact": lambda table: table.maintenance.compact(),
    "expire": lambda table: table.maintenance.expire_snapshots(),
    "orphans": lambda table: table.maintenance.remove_orphan_files(),
    "new_write": lambda table: table.new_write(),
    "PyIceberg": lambda table: table.iceberg.transaction().set_properties(a="b").commit_transaction(),
}


@pytest.mark.parametrize("what", ["the lake", "its file"])
def test_moved_away_lake_raises_error_until_restored(tmp_path: Path, table: tf.Table, what: str) -> None:
    """LK-28: nothing is committed to the former file, or written to its former location."""
    catalog = cast(tf.Catalog, table.catalog)
    moved = (tmp_path / "lake") if what == "the lake" else (tmp_path / "lake" / "catalog.db")
    away = moved.with_name("away")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    moved.rename(away)
    for name, change in CHANGES.items():
        with pytest.raises(StorageError, match=GONE):
            print(name, change(table))
    for name, call in CALLS.items():
        with pytest.raises(StorageError, match=GONE) as caught:
            print(name, call(catalog))
        assert describe_error(caught.value)["condition"] == "TABLEFORMAT_STORAGE", name
    assert not moved.exists()
    if what == "its file":
        assert table.scan().count() == 1, "what is loaded is read as long as its files are there (LK-17)"
    else:
        assert opened_anew(away).scan().count() == 1
    away.rename(moved)
    assert [path for path in before if not path.exists() and not path.name.startswith("catalog.db-")] == []
    table.append(rows("b", [1]))
    assert live_tuples(opened_anew(tmp_path / "lake")) == [("a", 1, "x"), ("b", 1, "x")]


def test_commits_go_to_the_lake_now_at_the_path(tmp_path: Path, table: tf.Table) -> None:
    """LK-28: the former lake, which was renamed, stays unchanged."""
    replace_by_copy(tmp_path)
    table.append(rows("b", [1]))
    assert live_tuples(opened_anew(tmp_path / "lake")) == [("a", 1, "x"), ("b", 1, "x")]
    assert live_tuples(table) == [("a", 1, "x"), ("b", 1, "x")]
    with pytest.raises(CopiedLakeError):
        opened_anew(tmp_path / "former").append(rows("c", [1]))
    assert live_tuples(opened_anew(tmp_path / "former")) == [("a", 1, "x")]


def test_recreated_catalog_file_does_not_have_the_tables(tmp_path: Path, table: tf.Table) -> None:
    """LK-28: an error is raised, because the commit could not be found by anyone."""
    shutil.rmtree(tmp_path / "lake")
    tf.open_catalog(str(tmp_path / "lake")).close()
    with pytest.raises(TableFormatError, match="does not exist"):
        table.append(rows("b", [1]))
    assert [path for path in (tmp_path / "lake").rglob("*") if path.suffix == ".parquet"] == []


def test_lake_replaced_after_staging_rejects_the_commit(
    tmp_path: Path, table: tf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LK-28: the files of the change stayed in the former one, so that the new one shall not name them."""
    produce = SnapshotProducer.produce
    swaps = [replace_by_copy]

    def swapped(self: SnapshotProducer, *args: Any, **options: Any) -> Any:
        snapshot = produce(self, *args, **options)
        if swaps:
            (tmp_path / "lake").rename(tmp_path / "former")
            shutil.copytree(tmp_path / "before", tmp_path / "lake")
            swaps.clear()
        return snapshot

    shutil.copytree(tmp_path / "lake", tmp_path / "before")
    monkeypatch.setattr(SnapshotProducer, "produce", swapped)
    with pytest.raises(StorageError, match=r"1 of the files written for db\.t .* do not exist.*Run the op"):
        table.append(rows("b", [1]))
    assert opened_anew(tmp_path / "lake").verify(deep=True).errors == ()
    table.append(rows("c", [1]))
    assert live_tuples(opened_anew(tmp_path / "lake")) == [("a", 1, "x"), ("c", 1, "x")]


@pytest.mark.parametrize("move", [replace_by_copy, lambda each: (each / "lake").rename(each / "former")])
def test_lake_moved_before_commit_reports_nothing_committed(
    tmp_path: Path, table: tf.Table, move: Callable[[Path], Any]
) -> None:
    """LK-28: the error says that the commit did not happen; its outcome is not unknown (CP-13)."""
    engine = cast(SqlCatalog, cast(tf.Catalog, table.catalog).iceberg).engine

    def moved(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.startswith("UPDATE") and not (tmp_path / "former").exists():
            move(tmp_path)

    event.listen(engine, "after_cursor_execute", moved)
    with pytest.raises(StorageError, match="Nothing was changed"):
        table.append(rows("b", [1]))
    for place in ("lake", "former"):
        if (tmp_path / place).exists():
            assert live_tuples(opened_anew(tmp_path / place)) == [("a", 1, "x")]


def test_handle_continues_on_a_restored_backup(tmp_path: Path, table: tf.Table) -> None:
    """LK-28: a handle that is newer than the backup continues with the contents of the backup."""
    shutil.copytree(tmp_path / "lake", tmp_path / "backup")
    table.append(rows("b", [1]))
    shutil.rmtree(tmp_path / "lake")
    (tmp_path / "backup").rename(tmp_path / "lake")
    fresh = cast(tf.Catalog, table.catalog).load_table("db.t")
    assert live_tuples(fresh) == [("a", 1, "x")]
    fresh.append(rows("c", [1]))
    assert live_tuples(table.refresh()) == [("a", 1, "x"), ("c", 1, "x")]
    assert table.verify(deep=True).errors == ()


def test_unpickled_catalog_does_not_create_a_lake(tmp_path: Path, table: tf.Table) -> None:
    """LK-28: if the lake is gone, the catalog raises an error, and a handle reads the remaining files."""
    pickled = pickle.dumps((table.catalog, table))
    (tmp_path / "lake" / "catalog.db").rename(tmp_path / "away")
    catalog, handle = pickle.loads(pickled)
    for call in CALLS.values():
        with pytest.raises(StorageError, match=r"catalog\.db does not exist: .*since its catalog was pickled"):
            call(catalog)
    assert live_tuples(handle) == [("a", 1, "x")]
    with pytest.raises(StorageError, match="since its catalog was pickled"):
        handle.append(rows("b", [1]))
    shutil.rmtree(tmp_path / "lake")
    catalog, handle = pickle.loads(pickled)
    with pytest.raises(StorageError, match=r"catalog\.db does not exist"):
        catalog.list_tables()
    assert not (tmp_path / "lake").exists()


def test_relocated_copy_at_the_original_path(tmp_path: Path, table: tf.Table) -> None:
    """LK-28, LK-8: a restored lake, whose metadata has its current location."""
    catalog = cast(tf.Catalog, table.catalog)
    relocate_to(catalog.iceberg, str(tmp_path / "backup"), {})
    (tmp_path / "lake").rename(tmp_path / "former")
    relocate_to(tf.open_catalog(str(tmp_path / "backup")).iceberg, str(tmp_path / "lake"), {})
    assert catalog.load_table("db.t").append(rows("b", [1])).added_row_count == 1
    assert live_tuples(opened_anew(tmp_path / "lake")) == [("a", 1, "x"), ("b", 1, "x")]
    assert pa.table(opened_anew(tmp_path / "former").scan().to_arrow()).num_rows == 1
