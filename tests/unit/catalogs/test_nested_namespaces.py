"""Nested namespaces: their tables are found wherever tables are listed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tableformat
from tableformat import Catalog, open_catalog
from tableformat.cli.main import app
from tableformat.errors import InvalidArgumentError

SCHEMA = pa.schema([pa.field("a", pa.int64(), nullable=False)])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(str(tmp_path / "lake")) as opened:
        opened.create_namespace("x")
        opened.create_namespace("x.y")
        opened.create_table("x.y.t", SCHEMA, key=["a"]).append(pa.table({"a": [1, 2]}, schema=SCHEMA))
        yield opened


def test_table_in_nested_namespace_is_created_listed_and_dropped(catalog: Catalog) -> None:
    assert catalog.list_namespaces() == ["x"]
    assert catalog.list_namespaces(recursive=True) == ["x", "x.y"]
    assert (catalog.list_tables("x"), catalog.list_tables("x.y")) == ([], ["x.y.t"])
    catalog.create_namespace("w")
    catalog.create_table("w.t", SCHEMA)
    assert catalog.list_tables() == ["w.t", "x.y.t"]
    table = catalog.load_table("x.y.t")
    assert table.location.endswith("/x.y/t")
    assert table.scan().count() == 2
    catalog.drop_table("x.y.t", purge=True)
    assert not catalog.table_exists("x.y.t")


def test_namespace_with_children_cannot_be_dropped(catalog: Catalog) -> None:
    with pytest.raises(InvalidArgumentError, match=r"'x' still has namespaces: x\.y"):
        catalog.drop_namespace("x")
    catalog.drop_table("x.y.t")
    catalog.drop_namespace("x.y")
    catalog.drop_namespace("x")
    assert catalog.list_namespaces() == []


def test_nested_table_is_visible_in_duckdb_and_command_line(catalog: Catalog, tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        tableformat.duckdb.attach(connection, catalog, name="lake")
        assert connection.execute('SELECT count(*) FROM lake."x.y".t').fetchall() == [(2,)]
    listed = CliRunner().invoke(app, ["--catalog", str(tmp_path / "lake"), "ls"])
    assert listed.output.split() == ["x.y.t"]


@pytest.mark.parametrize("properties", [{"\ud800": "x"}, {"x": "\udc00"}, {"x": 1}])
def test_non_text_namespace_properties_are_rejected(catalog: Catalog, properties: dict[str, Any]) -> None:
    """Found by hostile calls: a UnicodeEncodeError."""
    with pytest.raises(InvalidArgumentError, match="namespace properties must be text"):
        catalog.create_namespace("a", properties=properties)
    assert not catalog.namespace_exists("a")
