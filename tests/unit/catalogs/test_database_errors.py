"""Errors that SQLite or another database raises instead of returning rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.catalog.sql import SqlCatalog

import tableformat as tf
from spark_ext.service.wire.errors import describe_error
from tableformat.catalogs import sqlite_engine
from tableformat.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptFileError,
    ReadOnlyLakeError,
    StorageError,
)

ROWS = pa.table({"id": [1]}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))


CALLS: dict[str, Callable[[tf.Catalog, tf.Table], Any]] = {
    "load": lambda catalog, _: catalog.load_table("db.t"),
    "refresh": lambda _, table: table.refresh(),
    "exists": lambda catalog, _: catalog.table_exists("db.t"),
    "list": lambda catalog, _: catalog.list_tables(),
    "list views": lambda catalog, _: catalog.list_views(),
    "list namespaces": lambda catalog, _: catalog.list_namespaces(),
    "namespace exists": lambda catalog, _: catalog.namespace_exists("db"),
    "create namespace": lambda catalog, _: catalog.create_namespace("x"),
    "drop namespace": lambda catalog, _: catalog.drop_namespace("db"),
    "create": lambda catalog, _: catalog.create_table("db.n", ROWS.schema),
    "rename": lambda catalog, _: catalog.rename_table("db.t", "db.u"),
    "drop": lambda catalog, _: catalog.drop_table("db.t"),
    "purge": lambda catalog, _: catalog.drop_table("db.t", purge=True),
    "drop view": lambda catalog, _: catalog.drop_view("db.v"),
    "register": lambda catalog, table: catalog.register_table("db.v", table.iceberg.metadata_location),
    "adopt": lambda catalog, _: catalog.adopt_table("db.t", key=["id"]),
    "append": lambda _, table: table.append(ROWS),
    "properties": lambda _, table: table.set_properties({"a": "b"}),
    "branch": lambda _, table: table.create_branch("b"),
    "compact": lambda _, table: table.maintenance.compact(),
}


@pytest.fixture(params=["lake", "sql"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tf.Table]:
    """`db.t` with a row, in a lake or in PyIceberg's catalog over the file `catalog.db`."""
    options = {"uri": f"sqlite:///{tmp_path}/catalog.db"}
    if request.param == "sql":
        options |= {"type": "sql", "warehouse": f"file://{tmp_path}/lake"}
    with new_lake("prod" if request.param == "sql" else f"{tmp_path}/lake", **options) as catalog:
        table = catalog.create_table("db.t", ROWS.schema, key=["id"], properties={"format-version": "2"})
        table.append(ROWS)
        yield table


def check_every_call(table: tf.Table, error: type[Exception], message: str) -> None:
    catalog = cast(tf.Catalog, table.catalog)
    for name, call in CALLS.items():
        with pytest.raises(error, match=message):
            print(name, call(catalog, table))


@contextmanager
def answers(table: tf.Table, error: str, statements: str = "") -> Iterator[None]:
    """Statements that begin so, or with COMMIT the end of each transaction, are an error of SQLite."""
    engine = cast(SqlCatalog, cast(tf.Catalog, table.catalog).iceberg).engine
    execute, commit = engine.dialect.do_execute, engine.dialect.do_commit

    def refuse(cursor: Any, statement: str, *rest: Any) -> None:
        if statement.startswith(statements):
            raise sqlite3.OperationalError(error)
        execute(cursor, statement, *rest)

    def refuse_commit(_connection: Any) -> None:
        raise sqlite3.OperationalError(error)

    with pytest.MonkeyPatch.context() as patch:
        if statements == "COMMIT":
            patch.setattr(engine.dialect, "do_commit", refuse_commit)
        else:
            patch.setattr(engine.dialect, "do_execute", refuse)
        yield
    assert engine.dialect.do_commit == commit


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ("disk I/O error", StorageError, r"catalog\.db: disk I/O error\. Nothing was changed\. Check the disk"),
        ("attempt to write a readonly database", ReadOnlyLakeError, r"catalog\.db is not writable"),
        ("database or disk is full", StorageError, r"is full\. Nothing was changed\. Free some disk space"),
        ("database is locked", StorageError, r"is locked\. Nothing was changed\. Another process"),
    ],
)
def test_sqlite_errors_are_raised_as_library_errors(
    table: tf.Table, answer: str, error: type[Exception], message: str
) -> None:
    """LK-29: through every entry point, and in Spark."""
    with answers(table, answer):
        check_every_call(table, error, message)
        with pytest.raises(StorageError) as caught:
            table.refresh()
        assert describe_error(caught.value)["condition"] in ("TABLEFORMAT_STORAGE", "TABLEFORMAT_READ_ONLY_LAKE")
    assert table.append(ROWS).added_row_count == 1


def test_damaged_catalog_file_is_not_reported_as_outage(table: tf.Table, tmp_path: Path) -> None:
    """LK-29: a damaged file is not reported as an outage."""
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with (tmp_path / "catalog.db").open("r+b") as file:
            file.write(b"x" * 4096)
        check_every_call(
            table, CorruptFileError, r"catalog\.db: it is not a SQLite database, or it is damaged.*relocate"
        )


@pytest.mark.parametrize("answer", ["disk I/O error", "database or disk is full"])
def test_failed_sqlite_commit_outcome_is_checked(table: tf.Table, answer: str) -> None:
    """LK-29, CP-13: of a table it is looked whether it happened; a name that was to change may have."""
    catalog = cast(tf.Catalog, table.catalog)
    with answers(table, answer, "COMMIT"):
        for name in ("create namespace", "rename", "drop"):
            with pytest.raises(StorageError, match=rf"cannot be reached: {answer}\. Check its file"):
                CALLS[name](catalog, table)
        with pytest.raises(CommitStateUnknownError, match=answer):
            CALLS["create"](catalog, table)
    assert (catalog.list_tables(), catalog.list_namespaces()) == (["db.t"], ["db"])
    assert table.refresh().scan().count() == 1


def test_rejected_sqlite_swap_removes_files_without_retry(tmp_path: Path) -> None:
    """LK-29: nothing was applied, so that the files of the commit go; only a lock is waited for again."""
    with new_lake(f"{tmp_path}/lake") as catalog:
        properties = {"commit.retry.num-retries": "2", "commit.retry.max-wait-ms": "1"}
        table = catalog.create_table("db.t", ROWS.schema, key=["id"], properties=properties)
        before = sorted((tmp_path / "lake" / "db").rglob("*.*"))
        with answers(table, "disk I/O error", "UPDATE"), pytest.raises(StorageError, match="disk I/O error"):
            table.append(ROWS)
        with (
            answers(table, "database is locked", "UPDATE"),
            pytest.raises(CommitConflictError),
        ):
            table.append(ROWS)
        assert sorted((tmp_path / "lake" / "db").rglob("*.*")) == before


def test_locked_database_allows_reads_and_fails_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LK-29: reads go on."""
    monkeypatch.setattr(sqlite_engine, "BUSY_TIMEOUT_SECONDS", 0)
    with new_lake(f"{tmp_path}/lake") as catalog:
        file = tmp_path / "lake" / "catalog.db"
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            assert catalog.list_namespaces() == ["db"]
            with pytest.raises(StorageError, match=r"locked.*Another process has had a transaction open"):
                catalog.create_namespace("x")
        catalog.create_namespace("x")


def test_catalog_file_that_cannot_be_opened_raises_error(tmp_path: Path) -> None:
    """LK-29: in the directory of a lake, or apart from it."""
    (tmp_path / "catalog.db").write_bytes(b"x" * 4096)
    for path, options in ((str(tmp_path), {}), ("s3://bucket/lake", {"catalog_file": f"{tmp_path}/catalog.db"})):
        with pytest.raises(CorruptFileError, match=r"catalog\.db: it is not a SQLite database"):
            tf.open_catalog(path, **options)
    (tmp_path / "directory.db").mkdir()
    with pytest.raises(StorageError, match=r"directory\.db: unable to open database file"):
        tf.open_catalog("s3://bucket/lake", catalog_file=f"{tmp_path}/directory.db")
