"""Paths given as `file:` URIs, and catalogs and directories with the same name."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from typer.testing import CliRunner

import tableformat as tf
from tableformat.cli.main import app
from tableformat.errors import InvalidArgumentError

ORDERS = pa.schema([("customer", pa.string()), ("order", pa.int64()), ("amount", pa.float64())])
ROWS = pa.table({"customer": ["ann", "ann", "bob"], "order": [1, 2, 3], "amount": [2.0, 6.5, 0.0]}, schema=ORDERS)


@pytest.mark.parametrize("prefix", ["file:", "file://", "file://localhost", "FILE:"])
def test_file_uri_opens_its_directory(tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tf.open_catalog(str(tmp_path / "lake")).create_namespace("db")
    assert tf.open_catalog(f"{prefix}{tmp_path}/lake").list_namespaces() == ["db"]
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


@pytest.mark.parametrize("prefix", ["file:", "file://"])
def test_the_command_line_and_a_pickle_open_the_same_directory(tmp_path: Path, prefix: str) -> None:
    catalog = new_lake(f"{prefix}{tmp_path}/lake")
    assert pickle.loads(pickle.dumps(catalog)).list_namespaces() == ["db"]
    result = CliRunner().invoke(app, ["--catalog", f"{prefix}{tmp_path}/lake", "query", "SELECT 7 AS n"])
    assert (result.exit_code, "7" in result.output) == (0, True)


@pytest.mark.parametrize("uri", ["file:lake", "file://lake", "file://host/lake", "file:", "file:////lake"])
def test_a_uri_without_an_absolute_path_is_refused(tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match="not an absolute path"):
        tf.open_catalog(uri)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("prefix", ["file:", "file://", "file://localhost", "FILE:"])
def test_a_file_uri_is_decoded_once(tmp_path: Path, prefix: str) -> None:
    """LK-32"""
    catalog = tf.open_catalog(f"{prefix}{tmp_path}/my%20lake%2520%C3%BC")
    assert [path.name for path in tmp_path.iterdir()] == ["my lake%20ü"]
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", ORDERS)
    table.append(ROWS)
    assert tf.open_catalog(tmp_path / "my lake%20ü").load_table("shop.orders").scan().to_arrow() == ROWS
    again = pickle.loads(pickle.dumps(table))
    assert again.scan().to_arrow() == ROWS
    result = CliRunner().invoke(
        app, ["--catalog", f"{prefix}{tmp_path}/my%20lake%2520%C3%BC", "query", "SELECT sum(amount) FROM shop.orders"]
    )
    assert (result.exit_code, "8.5" in result.output) == (0, True)


def test_ambiguous_file_uri_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "my%20lake").mkdir()
    with pytest.raises(InvalidArgumentError, match="my lake"):
        tf.open_catalog(f"file://{tmp_path}/my%20lake")
    assert [path.name for path in tmp_path.iterdir()] == ["my%20lake"]
    tf.open_catalog(f"file://{tmp_path}/my%2520lake").create_namespace("shop")
    assert tf.open_catalog(tmp_path / "my%20lake").list_namespaces() == ["shop"]


def test_copy_target_and_catalog_file_uris_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = tf.open_catalog(tmp_path / "lake")
    catalog.create_namespace("shop")
    catalog.create_table("shop.orders", ORDERS).append(ROWS)
    for dry_run in (True, False):
        catalog.relocate((tmp_path / "my copy").as_uri(), dry_run=dry_run)
    assert tf.open_catalog(tmp_path / "my copy").load_table("shop.orders").scan().to_arrow() == ROWS
    tf.open_catalog(f"memory://{uuid.uuid4()}", catalog_file=(tmp_path / "my names.db").as_uri())
    assert (tmp_path / "my names.db").is_file()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("file:")]


def test_percent_encoded_locations_are_read_literally_first(tmp_path: Path) -> None:
    """LK-32: Iceberg and Hive write `day=a%20b` for a directory of that very name."""
    catalog = tf.open_catalog(tmp_path / "lake")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", ORDERS)
    for directory, row in (("day=a%20b", 0), ("day=a b", 1), ("day=c d", 2)):
        (tmp_path / directory).mkdir()
        pq.write_table(ROWS.slice(row, 1), tmp_path / directory / "orders.parquet")
    names = ["day=a%20b/orders.parquet", "day=c%20d/orders.parquet"]
    table.add_files([f"file://{tmp_path}/{name}" for name in names])
    assert table.scan().to_arrow().sort_by("order") == pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(2, 1)])
    table.add_files([(tmp_path / "day=a b/orders.parquet").as_uri().replace("%3D", "=").replace("%20", " ")])
    assert table.scan().to_arrow().sort_by("order") == ROWS


def test_metadata_file_uri_is_decoded(tmp_path: Path) -> None:
    catalog = tf.open_catalog(tmp_path / "my lake")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", ORDERS)
    table.append(ROWS)
    metadata = tf.read_metadata(table.iceberg.metadata_location).iceberg.metadata_location
    uri = Path(metadata.removeprefix("file://")).as_uri()
    assert "%20" in uri
    assert tf.read_metadata(uri).scan().to_arrow() == ROWS
    assert tf.read_metadata(uri.rpartition("/metadata/")[0]).scan().to_arrow() == ROWS
    other = tf.open_catalog(tmp_path / "other")
    other.create_namespace("shop")
    assert other.register_table("shop.orders", uri).scan().to_arrow() == ROWS
