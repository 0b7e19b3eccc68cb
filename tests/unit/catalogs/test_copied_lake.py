"""A lake that was copied with its catalog can be read; writing would change the original (CP-25)."""

from __future__ import annotations

import pickle
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from maintenance_tables import keyed_table, rows
from new_lakes import new_lake
from pyiceberg.catalog.sql import SqlCatalog

import tableformat as tf
from tableformat.errors import CopiedLakeError
from tableformat.testing.table_rows import live_tuples


def everything(directory: Path) -> set[str]:
    return {str(path) for path in directory.rglob("*") if not path.name.startswith("catalog.db")}


@pytest.fixture
def copy(tmp_path: Path) -> tf.Table:
    """The table in a copy of the lake, next to the original."""
    keyed_table(tmp_path).append(rows("a", range(3)))
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    return tf.open_catalog(str(tmp_path / "copy")).load_table("db.t")


CHANGES: dict[str, Callable[[tf.Table], Any]] = {
    "append": lambda table: table.append(rows("b", [1])),
    "upsert": lambda table: table.upsert(rows("a", [1])),
    "replace": lambda table: table.replace(rows("a", [1]), prefix=["id1"]),
    "delete": lambda table: table.delete("id2 = 1", mode="scan"),
    "delete_prefix": lambda table: table.delete_prefix({"id1": "a"}),
    "overwrite": lambda table: table.overwrite(rows("a", [1])),
    "transaction": lambda table: table.transaction().__enter__().append(rows("a", [1])),
    "new_write": lambda table: table.new_write(),
    "create_branch": lambda table: table.create_branch("b"),
    "set_properties": lambda table: table.set_properties({"a": "b"}),
    "update_schema": lambda table: table.update_schema().delete_column("payload").commit(),
    "upgrade": lambda table: table.upgrade(),
    "compact": lambda table: table.maintenance.compact(),
    "convert_deletes": lambda table: table.maintenance.convert_deletes(),
    "expire_snapshots": lambda table: table.maintenance.expire_snapshots(),
    "remove_orphan_files": lambda table: table.maintenance.remove_orphan_files(),
    "run": lambda table: table.maintenance.run(),
    "purge": lambda table: table.catalog.drop_table("db.t", purge=True),
    "PyIceberg's purge": lambda table: table.iceberg.catalog.purge_table("db.t"),
    "PyIceberg's properties": lambda table: table.iceberg.transaction().set_properties(a="b").commit_transaction(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_write_to_copied_lake_is_rejected(copy: tf.Table, tmp_path: Path, change: str) -> None:
    """CP-25"""
    before = everything(tmp_path)
    with pytest.raises(CopiedLakeError) as refused:
        CHANGES[change](copy)
    assert refused.value.lake == str(tmp_path / "lake")
    assert str(tmp_path / "copy" / "catalog.db") in str(refused.value)
    assert "Write through" in str(refused.value)
    assert everything(tmp_path) == before
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_copied_lake_can_read_drop_and_create_tables(copy: tf.Table, tmp_path: Path) -> None:
    """CP-25"""
    assert live_tuples(copy) == [("a", number, "x") for number in range(3)]
    assert copy.maintenance.health().data_file_count == 1
    catalog = copy.catalog
    new = catalog.create_table("db.new", copy.schema, key=copy.key)
    new.append(copy.scan().to_batches())
    assert live_tuples(new) == live_tuples(copy)
    assert new.location == f"file://{tmp_path}/copy/db/new"
    catalog.drop_table("db.t")
    original = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    original.append(rows("b", [1]))
    assert original.scan().count() == 4


def test_renamed_table_of_copied_lake_is_still_read_only(copy: tf.Table) -> None:
    """CP-25"""
    renamed = copy.catalog.rename_table("db.t", "db.mine")
    with pytest.raises(CopiedLakeError):
        renamed.append(rows("b", [1]))


def test_copy_with_external_metadata_path_is_read_only(tmp_path: Path) -> None:
    """CP-25"""
    keyed_table(tmp_path, properties={"write.metadata.path": f"file://{tmp_path}/meta"}).append(rows("a", [1]))
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    with pytest.raises(CopiedLakeError):
        tf.open_catalog(str(tmp_path / "copy")).load_table("db.t").append(rows("b", [1]))


def test_table_registered_in_two_lakes_is_read_only_in_the_second(tmp_path: Path) -> None:
    """CP-25: two catalogs on one table, without a copy."""
    table = keyed_table(tmp_path)
    with new_lake(tmp_path / "other") as other:
        registered = other.register_table("db.t", table.iceberg.metadata_location)
        with pytest.raises(CopiedLakeError):
            registered.append(rows("b", [1]))


def test_external_tables_and_nested_lakes_are_writable(tmp_path: Path) -> None:
    """CP-25"""
    table = keyed_table(tmp_path)
    outside = table.catalog.create_table("db.out", table.schema, location=f"file://{tmp_path}/elsewhere/t")
    outside.append(rows("a", [1]))
    with new_lake(tmp_path / "lake" / "inner") as inner:
        inner.create_table("db.t", table.schema).append(rows("a", [1]))
    with new_lake(tmp_path / "apart", catalog_file=str(tmp_path / "files" / "x.db")) as apart:
        apart.create_table("db.t", table.schema).append(rows("a", [1]))


@pytest.mark.parametrize(
    ("statements", "is_refused"),
    [
        (None, False),
        (["CREATE TABLE books (title TEXT)"], False),
        (["CREATE TABLE iceberg_tables (metadata_location TEXT)", "INSERT INTO iceberg_tables VALUES (NULL)"], False),
        (["CREATE TABLE iceberg_tables (place TEXT)"], True),
    ],
    ids=["no database", "no catalog", "a table without metadata", "a catalog that cannot be read"],
)
def test_unrelated_catalog_file_in_parent_does_not_block_writes(
    tmp_path: Path, statements: list[str] | None, is_refused: bool
) -> None:
    """CP-25: a file that is not a catalog with the table does not prevent writes; a file that cannot be read may be
    one."""
    if statements is None:
        (tmp_path / "catalog.db").write_text("a list of books")
    else:
        with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection, connection:
            for statement in statements:
                connection.execute(statement)
    catalog = new_lake(tmp_path / "tables", catalog_file=str(tmp_path / "files" / "x.db"))
    with catalog, pytest.raises(CopiedLakeError) if is_refused else nullcontext():
        catalog.create_table("db.t", rows("a", [1]).schema).append(rows("a", [1]))


def test_copied_pyiceberg_sqlite_catalog_is_read_only(copy: tf.Table, tmp_path: Path) -> None:
    """CP-25: PyIceberg's own SQL catalog on the copied file."""
    backend = SqlCatalog(
        "tableformat", uri=f"sqlite:///{tmp_path}/copy/catalog.db", warehouse=f"file://{tmp_path}/copy"
    )
    with pytest.raises(CopiedLakeError):
        tf.Catalog(backend).load_table("db.t").append(rows("b", [1]))
