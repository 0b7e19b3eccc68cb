"""Names of tables, namespaces, branches and tags: none points outside the lake, through any entry point."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

import tableformat as tf
from tableformat.errors import InvalidArgumentError

SCHEMA = pa.schema([pa.field("a", pa.int64(), nullable=False)])
ICEBERG = Schema(NestedField(1, "a", LongType(), required=True))
BAD_PARTS = [
    "x/../../outside",
    "/outside",
    "..",
    ".",
    "a//b",
    "a/",
    "..a",
    "a..",
    "..\\outside",
    "a/./b",
    "a\0b",
    "a\nb",
    "\x1b[31m",
    "a\x7f",
    "\ud800",
    "",
    "   ",
    "x" * 256,
    "é" * 128,
]


@pytest.fixture
def catalog(tmp_path: Path) -> tf.Catalog:
    opened = new_lake(tmp_path / "a" / "b" / "lake")
    opened.create_table("db.t", SCHEMA, key=["a"]).append(pa.table({"a": [1]}, schema=SCHEMA))
    return opened


DOORS: dict[str, Callable[[tf.Catalog, str], Any]] = {
    "create_table": lambda catalog, part: catalog.create_table(("db", part), SCHEMA),
    "create_table with location": lambda catalog, part: catalog.create_table(
        ("db", part), SCHEMA, location=f"{catalog.iceberg.properties['warehouse']}/here"
    ),
    "create_table in namespace": lambda catalog, part: catalog.create_table((part, "t"), SCHEMA),
    "stage_table": lambda catalog, part: catalog.stage_table(("db", part), SCHEMA),
    "create_namespace": lambda catalog, part: catalog.create_namespace((part,)),
    "create_namespace in another": lambda catalog, part: catalog.create_namespace(("db", part)),
    "rename_table": lambda catalog, part: catalog.rename_table("db.t", ("db", part)),
    "register_table": lambda catalog, part: catalog.register_table(
        ("db", part), catalog.load_table("db.t").iceberg.metadata_location
    ),
    "PyIceberg's create_table": lambda catalog, part: catalog.iceberg.create_table(("db", part), ICEBERG),
    "PyIceberg's create_table_transaction": lambda catalog, part: catalog.iceberg.create_table_transaction(
        ("db", part), ICEBERG
    ),
    "PyIceberg's create_namespace": lambda catalog, part: catalog.iceberg.create_namespace((part,)),
    "PyIceberg's rename_table": lambda catalog, part: catalog.iceberg.rename_table("db.t", ("db", part)),
    "PyIceberg's register_table": lambda catalog, part: catalog.iceberg.register_table(
        ("db", part), catalog.load_table("db.t").iceberg.metadata_location
    ),
}


def everything(directory: Path) -> set[Path]:
    return {path for path in directory.rglob("*") if not path.name.startswith("catalog.db")}


@pytest.mark.parametrize("door", DOORS)
def test_names_cannot_escape_the_lake_directory(catalog: tf.Catalog, tmp_path: Path, door: str) -> None:
    before = everything(tmp_path)
    for part in BAD_PARTS:
        with pytest.raises(InvalidArgumentError) as refused:
            DOORS[door](catalog, part)
        assert str(refused.value).isprintable()
    assert everything(tmp_path) == before
    assert catalog.list_namespaces(recursive=True) == ["db"]
    assert catalog.list_tables("db") == ["db.t"]


def test_table_directories_are_not_nested(tmp_path: Path) -> None:
    names = [(namespace, table) for namespace in ("n", "n/m", "n%2Fm") for table in ("m", "m/metadata", "m%2Fmetadata")]
    with tf.open_catalog(str(tmp_path / "lake")) as catalog:
        for namespace in dict.fromkeys(namespace for namespace, _ in names):
            catalog.create_namespace((namespace,))
        locations = [catalog.create_table(name, SCHEMA).location for name in names]
        assert not any(one != other and f"{one}/".startswith(f"{other}/") for one in locations for other in locations)
        assert len(set(locations)) == len(names)
        for name, location in zip(names, locations, strict=True):
            assert catalog.load_table(name).location == location


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "a\nb", "\x1b[2J", "\ud800", None, 7])
def test_unprintable_ref_names_are_rejected(catalog: tf.Catalog, name: Any) -> None:
    table = catalog.load_table("db.t")
    for make in (table.create_branch, table.create_tag):
        with pytest.raises(InvalidArgumentError) as refused:
            make(name)
        assert str(refused.value).isprintable()
    with pytest.raises(InvalidArgumentError):
        table.fast_forward(name, "main")
    assert set(table.refresh().metadata.refs) == {"main"}


@pytest.mark.parametrize("name", ["../../outside", "feature/x", "..", "a.b", "é", "x" * 300])
def test_branch_names_do_not_become_paths(catalog: tf.Catalog, tmp_path: Path, name: str) -> None:
    table = catalog.load_table("db.t")
    table.create_branch(name)
    table.create_tag(f"{name}-tag")
    lake = tmp_path / "a" / "b" / "lake"
    outside = everything(tmp_path) - everything(lake)
    branch = catalog.load_table("db.t", branch=name)
    branch.append(pa.table({"a": [2]}, schema=SCHEMA), application_id="../../x", batch_id="../../y")
    assert (branch.scan().count(), table.refresh().scan().count()) == (2, 1)
    assert everything(tmp_path) - everything(lake) == outside
