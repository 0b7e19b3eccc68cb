"""Every operation and every job on each kind of catalog: the same rows as on a lake, step by step (LK-11)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from everything import NAME, STEPS, create, rows
from matrix import PYTHON, Matrix
from postgres_server import postgres_uri
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from servers import BUCKET, glue_options, hive_metastore, moto, rest_server

import tableformat as tf
from tableformat.catalogs.views.view_metadata import ViewDefinition
from tableformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidArgumentError,
    NamespaceNotFoundError,
    SeveralTablesError,
    StorageError,
    TableNotFoundError,
    ViewNotFoundError,
)
from tableformat.maintenance.maintenance import Maintenance
from tableformat.testing.table_rows import live_tuples

pytestmark = pytest.mark.estate


@pytest.fixture(scope="module")
def files() -> Iterator[dict[str, str]]:
    """Credentials of the environment would hide that vended ones are not used."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    with moto() as options:
        yield options


@pytest.fixture(scope="module")
def rest(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with rest_server(tmp_path_factory.mktemp("rest"), files, warehouse=f"s3://{BUCKET}/rest") as client:
        yield client


@pytest.fixture
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], tf.Catalog]]:
    """Opens a catalog of a kind; what was opened is closed before its server is stopped."""
    with ExitStack() as stack:

        def open_kind(kind: str) -> tf.Catalog:
            if kind == "rest":
                return stack.enter_context(tf.open_catalog("rest", **request.getfixturevalue("rest")))
            if kind == "glue":
                files = request.getfixturevalue("files")
                options = {**glue_options(files, warehouse=f"s3://{BUCKET}/glue"), **files}
                return stack.enter_context(tf.open_catalog("glue", **options))
            if kind == "hive":
                options = stack.enter_context(hive_metastore(tmp_path))
                return stack.enter_context(tf.open_catalog("hive", **options))
            uri = stack.enter_context(postgres_uri())
            if kind == "lake on PostgreSQL":
                return stack.enter_context(tf.open_catalog(f"{tmp_path}/lake", uri=uri))
            assert kind == "sql"
            options = {"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path}/sql"}
            return stack.enter_context(tf.open_catalog("sql", **options))

        yield open_kind


WRITTEN = [
    ("rest", "2"),
    ("rest", "3"),
    ("glue", "2"),
    ("glue", "3"),
    ("sql", "2"),
    ("sql", "3"),
    ("hive", "2"),
    ("hive", "3"),
    ("lake on PostgreSQL", "2"),
    ("lake on PostgreSQL", "3"),
]


@pytest.mark.parametrize(("kind", "version"), WRITTEN)
def test_all_operations_and_jobs_agree_with_a_lake(
    opened: Callable[[str], tf.Catalog], tmp_path: Path, matrix: Matrix, kind: str, version: str
) -> None:
    """LK-11: each step leaves the rows that it leaves on a lake, and an error of one is an error of both."""

    def seen(row: str) -> None:
        matrix.seen(PYTHON, row, f"{kind} v{version}")

    catalog = opened(kind)
    table = create(catalog, version)
    seen("`create_table`")
    with tf.open_catalog(str(tmp_path / "expected")) as lake:
        expected = create(lake, version)
        for name, step in STEPS.items():
            step(expected)
            step(table)
            assert live_tuples(table.refresh()) == live_tuples(expected.refresh()), name
            seen(f"`{name}`")
            if name == "convert_deletes":
                assert table.iceberg.scan().to_arrow().num_rows == table.scan().count(), "PyIceberg"
                seen("read by PyIceberg, after the conversion")
        found = live_tuples(expected)
    assert len(found) > 5
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, catalog)
        assert connection.sql(f"SELECT count(*) FROM lake.{NAME}").fetchall() == [(len(found),)]
    seen("read by DuckDB, `tf.duckdb.attach`")
    adopted = catalog.create_table("db.foreign", pa.schema([("id", pa.int64())]))
    adopted.append(pa.table({"id": [1, 2]}))
    assert catalog.adopt_table("db.foreign", key=["id"]).required_columns == ("id",)
    catalog.load_table("db.foreign").delete_prefix({"id": 1})
    seen("`adopt_table`")
    catalog.relocate(str(tmp_path / "backup"), tables=[NAME, "db.foreign"])
    with tf.open_catalog(str(tmp_path / "backup")) as backup:
        assert live_tuples(backup.load_table(NAME)) == found
        assert live_tuples(backup.load_table("db.foreign")) == [(2,)]
    seen("`relocate`, to a lake")
    catalog.rename_table(NAME, "db.renamed")
    for name in catalog.list_tables("db"):
        catalog.drop_table(name, purge=True)
    assert catalog.list_tables("db") == []
    seen("`rename_table`, `drop_table`")


@pytest.mark.parametrize("kind", ["rest", "lake on PostgreSQL", "glue", "sql", "hive"])
def test_two_table_transaction_commits_or_is_unsupported(opened: Callable[[str], tf.Catalog], kind: str) -> None:
    """LK-36, LK-37."""
    catalog = opened(kind)
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    names = ("several.orders", "several.lines")
    catalog.create_namespace("several")
    for name in names:
        catalog.create_table(name, columns, key=["id"]).append(pa.table({"id": [1]}))

    def change() -> dict[str, tf.CommitResult]:
        with catalog.transaction(application_id="loader", batch_id=1) as tx:
            for name in names:
                tx.table(name).replace(pa.table({"id": [2]}))
        return tx.results

    if kind in ("rest", "lake on PostgreSQL"):
        assert {each.attempts for each in change().values()} == {1}
        assert {each.already_applied for each in change().values()} == {True}
    else:
        with pytest.raises(SeveralTablesError, match=kind):
            change()
    expected = [(1,), (2,)] if kind in ("rest", "lake on PostgreSQL") else [(1,)]
    assert [sorted(live_tuples(catalog.load_table(name))) for name in names] == [expected, expected]


@pytest.mark.parametrize("version", ["2", "3"])
def test_concurrent_commit_by_another_client(opened: Callable[[str], tf.Catalog], version: str) -> None:
    """LK-11: another client commits between what one reads and what it sends. Blind writes are sent again, what was
    read is read again, jobs plan again, and what cannot be both is a conflict."""
    one, two = opened("rest"), opened("rest")
    name = f"db.raced{version}"
    table = create(one, version, name)
    table.append(rows(*(("a", number, "x") for number in range(5))))
    losing(one, lambda: two.load_table(name).append(rows(("b", 1, "x"))))
    assert table.append(rows(("c", 1, "x"))).attempts == 2
    losing(one, lambda: two.load_table(name).delete("id2 = 1 AND id1 = 'a'", mode="scan"))
    assert table.delete("id2 < 3 AND id1 = 'a'", mode="scan").attempts > 1
    losing(one, lambda: two.load_table(name).delete("id2 = 4", mode="scan"))
    table.maintenance.compact()
    table.refresh().delete_prefix({"id1": "c"})
    losing(one, lambda: two.load_table(name).append(rows(("d", 1, "x"))))
    table.maintenance.convert_deletes()
    assert [row[:2] for row in live_tuples(two.load_table(name))] == [("a", 3), ("b", 1), ("d", 1)]
    assert live_tuples(table.refresh()) == live_tuples(two.load_table(name))
    assert table.verify(deep=True).errors == ()
    losing(one, lambda: two.load_table(name).update_schema().add_column("more", StringType()).commit())
    with pytest.raises(CommitConflictError):
        table.update_schema().add_column("other", StringType()).commit()
    assert "other" not in two.load_table(name).schema.names
    one.drop_table(name, purge=True)


def losing(catalog: tf.Catalog, other: Callable[[], Any]) -> None:
    """Let another client commit before the catalog's next commit."""
    send = catalog.iceberg.commit_table

    def commit_table(*arguments: Any) -> Any:
        catalog.iceberg.commit_table = send  # type: ignore[method-assign]
        other()
        return send(*arguments)

    catalog.iceberg.commit_table = commit_table  # type: ignore[method-assign]


def test_client_uses_location_and_credentials_of_the_server(
    rest: dict[str, str], files: dict[str, str], opened: Callable[[str], tf.Catalog]
) -> None:
    """LK-11: the client has neither the location of the files nor the credentials for them."""
    with pytest.raises(StorageError, match="no such token"):
        tf.open_catalog("rest", **{**rest, "token": "another"}).list_namespaces()
    catalog = opened("rest")
    assert not any(name.startswith("s3.") for name in catalog.iceberg.properties)
    table = create(catalog, "2", "db.vended")
    assert table.iceberg.io.properties["s3.endpoint"] == files["s3.endpoint"]
    table.append(rows(("a", 1, "x")))
    assert catalog.load_table("db.vended").scan().count() == 1
    with pytest.raises(TableNotFoundError):
        catalog.load_table("db.vendet")
    catalog.drop_table("db.vended", purge=True)


def test_every_operation_and_job_is_run() -> None:
    """LK-11: operations that are not run here are not listed as working."""
    jobs = {name for name in vars(Maintenance) if not name.startswith("_")} - {"iceberg", "branch"}
    assert jobs - set(STEPS) == {"plan_compaction", "repair", "upkeep_metrics", "wait_for_upkeep"}
    verbs = {name for name in vars(tf.Transaction) if not name.startswith("_")} - {"result", "commit"}
    assert verbs - set(STEPS) == {"replace_partition"}, "which needs range partitions"


def test_unavailable_rest_server_raises_storage_error(files: dict[str, str], tmp_path: Path) -> None:
    """LK-11: a StorageError, which is an OSError, as for every unavailable store."""
    with rest_server(tmp_path, files, warehouse=f"s3://{BUCKET}/away") as client:
        catalog = tf.open_catalog("rest", **client)
        table = create(catalog, "2", "db.away")
    with pytest.raises(StorageError, match=r"catalog .rest. cannot be reached: .*refused"):
        table.append(rows(("a", 1, "x")))
    with pytest.raises(StorageError, match="cannot be reached"):
        tf.open_catalog("rest", **client)


def test_unavailable_hive_metastore_raises_storage_error(tmp_path: Path) -> None:
    """LK-11: also for Hive, whose client raises errors that are not an OSError."""
    with hive_metastore(tmp_path) as options:
        catalog = tf.open_catalog("hive", **options)
        create(catalog, "2", "db.away")
    with pytest.raises(StorageError, match=r"catalog .hive. cannot be reached"):
        catalog.load_table("db.away")


def test_views_in_a_rest_catalog(rest: dict[str, str]) -> None:
    """SQ-26, SQ-27: the service keeps them, and both kinds of names are one."""
    with tf.open_catalog("views", **rest) as catalog:
        catalog.create_namespace("views")
        catalog.create_table("views.t", pa.schema([("a", pa.int64())]))
        name = ("views", "v")
        view = catalog.views.create(name, view_of("SELECT a FROM t"), {"comment": "c"})
        assert catalog.list_views() == ["views.v"]
        assert catalog.list_tables("views") == ["views.t"]
        changed = catalog.views.replace(view, view_of("SELECT a + 1 FROM t", column="c"), {"k": "1"})
        assert (changed.properties, [each.version_id for each in changed.versions]) == ({"k": "1"}, [1, 2])
        again = catalog.views.replace(changed, view_of("SELECT a + 1 FROM t", column="c"), {"k": "2"})
        assert [each.version_id for each in again.history()] == [1, 2]
        found = catalog.views.load(name)
        assert found is not None
        query = found.sql_for("spark")
        assert query is not None
        assert (query.sql, found.schema().column_names, found.properties) == ("SELECT a + 1 FROM t", ["c"], {"k": "2"})
        for change, error in (
            (lambda: catalog.views.create(name, view_of("SELECT 1"), {}), AlreadyExistsError),
            (lambda: catalog.views.create(("views", "t"), view_of("SELECT 1"), {}), AlreadyExistsError),
            (lambda: catalog.views.create(("nowhere", "v"), view_of("SELECT 1"), {}), NamespaceNotFoundError),
            (lambda: catalog.create_table("views.v", pa.schema([("a", pa.int64())])), AlreadyExistsError),
            (lambda: catalog.views.rename(name, ("views", "t")), AlreadyExistsError),
            (lambda: catalog.views.rename(("views", "w"), ("views", "x")), ViewNotFoundError),
            (lambda: catalog.drop_view("views.t"), ViewNotFoundError),
            (lambda: catalog.drop_namespace("views"), InvalidArgumentError),
        ):
            with pytest.raises(error):
                change()
        catalog.views.rename(name, ("views", "w"))
        assert catalog.list_views("views") == ["views.w"]
        catalog.drop_view("views.w")
        assert catalog.list_views() == []


def view_of(sql: str, column: str = "b") -> ViewDefinition:
    schema = Schema(NestedField(0, column, LongType()))
    return ViewDefinition(sql=sql, dialect="spark", schema=schema, default_namespace=("views",))
