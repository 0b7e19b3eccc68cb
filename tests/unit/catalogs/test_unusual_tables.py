"""Tables with unusual names, and unreadable tables among other tables: through every entry point."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from maintenance_tables import KEYED, keyed_table, rows
from pyiceberg.schema import Schema
from pyiceberg.types import GeometryType, NestedField
from typer.testing import CliRunner

import tableformat as tf
from tableformat.cli.main import app
from tableformat.errors import AlreadyExistsError, CorruptFileError, TableNotFoundError, UnsupportedFeatureError
from tableformat.storage.location import local_path

VERSION_3 = {"format-version": "3"}


def run(lake: Path, *arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["--catalog", str(lake), *arguments])
    assert result.exit_code == status, result.output
    return result.stdout


def test_names_with_dots_are_listed_loaded_and_queried(tmp_path: Path) -> None:
    """LK-1, LK-2"""
    catalog = keyed_table(tmp_path).catalog
    assert catalog is not None
    odd = catalog.create_table(("db", "a.b"), KEYED, key=["id1", "id2"])
    odd.append(rows("a", [1]))
    catalog.create_namespace("db.a")
    catalog.create_table("db.a.b", KEYED).append(rows("a", [1, 2]))
    assert catalog.list_tables("db") == ['db."a.b"', "db.t"]
    assert (odd.name, odd.location) == ('db."a.b"', f"file://{tmp_path}/lake/db/a.b")
    assert [catalog.load_table(name).scan().count() for name in ('db."a.b"', "db.a.b", ("db", "a.b"))] == [1, 2, 1]
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, catalog)
        found = connection.sql('SELECT (SELECT count(*) FROM lake.db."a.b"), (SELECT count(*) FROM lake."db.a".b)')
        assert found.fetchall() == [(1, 2)]
        catalog.rename_table('db."a.b"', 'db."c.d"')
        assert set(tf.duckdb.refresh(connection)) == {'lake.db."a.b"', 'lake.db."c.d"'}
        assert connection.sql('SELECT count(*) FROM lake.db."c.d"').fetchall() == [(1,)]
    assert run(tmp_path / "lake", "ls").split() == ['db."c.d"', "db.t", "db.a.b"]
    assert json.loads(run(tmp_path / "lake", "query", 'SELECT count(*) AS n FROM db."c.d"', "-o", "json"))["rows"] == [
        {"n": 1}
    ]
    assert '"c.d"' in run(tmp_path / "lake", "show", 'db."c.d"')
    catalog.load_table('db."c.d"').maintenance.remove_orphan_files(dry_run=True)
    catalog.drop_table('db."c.d"', purge=True)


def test_unreadable_table_does_not_affect_other_tables(tmp_path: Path) -> None:
    """LK-2"""
    good = keyed_table(tmp_path)
    good.append(rows("a", [1]))
    assert good.catalog is not None
    bad = good.catalog.create_table("db.bad", KEYED)
    path = local_path(bad.iceberg.metadata_location)
    assert path is not None
    Path(path).write_text("{")
    with tf.open_catalog(str(tmp_path / "lake")) as catalog, duckdb.connect() as connection:
        tf.duckdb.attach(connection, catalog)
        assert connection.sql("SELECT count(*) FROM lake.db.t").fetchall() == [(1,)]
        for query in ("SELECT * FROM lake.db.bad", "SELECT count(*) FROM lake.db.bad"):
            with pytest.raises(duckdb.InvalidInputException, match=r"db.bad cannot be read: .*not JSON"):
                connection.sql(query).fetchall()
        assert tf.duckdb.refresh(connection) == {}
        Path(path).unlink()
    assert "1" in run(tmp_path / "lake", "query", "SELECT count(*) FROM db.t")
    assert "db.t" in run(tmp_path / "lake", "ls", "--long", status=1)


def test_unreadable_table_exists_and_can_be_dropped(tmp_path: Path) -> None:
    """LK-2"""
    catalog = keyed_table(tmp_path).catalog
    assert catalog is not None
    path = local_path(catalog.create_table("db.bad", KEYED).iceberg.metadata_location)
    assert path is not None
    Path(path).unlink()
    with tf.open_catalog(str(tmp_path / "lake")) as other:
        assert other.table_exists("db.bad")
        with pytest.raises(AlreadyExistsError):
            other.create_table("db.bad", KEYED)
        with pytest.raises(CorruptFileError, match="does not exist"):
            other.drop_table("db.bad", purge=True)
        other.drop_table("db.bad")
        assert not other.table_exists("db.bad")
        with pytest.raises(TableNotFoundError):
            other.drop_table("db.bad")


@pytest.mark.parametrize("kind", ["variant", "timestamp_of_mars"])
def test_table_with_unknown_type_raises_unsupported_error(tmp_path: Path, kind: str) -> None:
    """FM-3: through each entry point, also if the namespace has other tables."""
    good = keyed_table(tmp_path)
    good.append(rows("a", [1]))
    assert good.catalog is not None
    path = local_path(good.catalog.create_table("db.bad", KEYED, properties=VERSION_3).iceberg.metadata_location)
    assert path is not None
    metadata = json.loads(Path(path).read_text())
    metadata["schemas"][0]["fields"][-1]["type"] = kind
    Path(path).write_text(json.dumps(metadata))
    said = f"a column has the type {kind}, which this library does not support"
    with tf.open_catalog(str(tmp_path / "lake")) as catalog, duckdb.connect() as connection:
        assert catalog.list_tables("db") == ["db.bad", "db.t"]
        for door in (lambda: catalog.load_table("db.bad"), lambda: tf.read_metadata(path)):
            with pytest.raises(UnsupportedFeatureError, match=said):
                door()
        tf.duckdb.attach(connection, catalog)
        assert connection.sql("SELECT count(*) FROM lake.db.t").fetchall() == [(1,)]
        with pytest.raises(duckdb.InvalidInputException, match=said):
            connection.sql("SELECT * FROM lake.db.bad").fetchall()


def test_geometry_columns_are_not_written(tmp_path: Path) -> None:
    """FM-22: such files had bounds of bytes, but Iceberg's bounds are points, so its readers would have missed rows."""
    table = keyed_table(tmp_path)
    assert table.catalog is not None
    schema = Schema(NestedField(1, "at", GeometryType(), required=False))
    with pytest.raises(UnsupportedFeatureError, match=r"column 'at' is a geometry.* WKB format"):
        table.catalog.create_table("db.places", schema, properties=VERSION_3)
    iceberg = table.catalog.iceberg.create_table("db.places", schema, properties=VERSION_3)
    places = table.catalog.load_table("db.places")
    assert places.scan().to_arrow().schema == pa.schema([("at", pa.binary())])
    with pytest.raises(UnsupportedFeatureError, match="column 'at' is a geometry"):
        places.append(pa.table({"at": [b"x"]}))
    assert iceberg.refresh().current_snapshot() is None
