"""Optional structs with required children: the struct may be null, and rows, operations and jobs write it as null."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, MapType, NestedField, StringType, StructType

import tableformat as tf
from tableformat.errors import InvalidArgumentError, RowsRefusedError, UnsupportedFeatureError

STRUCT: Final = StructType(NestedField(10, "f", LongType(), required=True))
DEEP: Final = StructType(
    NestedField(20, "s", StructType(NestedField(21, "f", LongType(), required=True)), required=True),
    NestedField(22, "l", ListType(23, LongType(), element_required=True), required=True),
    NestedField(24, "m", MapType(25, StringType(), 26, LongType(), value_required=True), required=True),
)
FULL: Final = {"id": 1, "v": "a", "st": {"f": 7}, "deep": {"s": {"f": 1}, "l": [1, 2], "m": [("k", 1)]}}


def bare(row: int) -> pa.Table:
    return pa.table({"id": [row], "v": ["new"]})


def catalog_at(path: Path) -> tf.Catalog:
    return new_lake(path / "lake")


def new_table(catalog: tf.Catalog, version: str, *later: NestedField) -> tf.Table:
    fields = [NestedField(1, "id", LongType(), required=True), NestedField(2, "v", StringType(), required=False)]
    return catalog.create_table("db.t", Schema(*fields, *later), key=["id"], properties={"format-version": version})


COLUMNS: Final = (NestedField(3, "st", STRUCT, required=False), NestedField(4, "deep", DEEP, required=False))
VERBS: Final[Mapping[str, Callable[[tf.Table, tf.Catalog], Any]]] = {
    "append": lambda t, _: t.append(bare(2)),
    "append null": lambda t, _: t.append(bare(2).append_column("st", pa.nulls(1))),
    "append dicts": lambda t, _: t.append([{"id": 2, "v": "new"}]),
    "upsert": lambda t, _: t.upsert(bare(2), missing="null"),
    "replace": lambda t, _: t.replace(bare(2), prefix=["id"]),
    "overwrite": lambda t, _: t.overwrite(bare(2), where="id = 2"),
    "update": lambda t, _: (t.append([{**FULL, "id": 2}]), t.update("id = 2", set={"st": "NULL", "deep": "NULL"})),
    "merge": lambda t, _: t.merge(bare(2), on="id").when_not_matched_insert({"id": "source.id"}).execute(),
    "changes": lambda t, _: t.apply_changes(
        bare(2).append_column("_op", pa.array(["I"])), order_by=None, missing="null"
    ),
    "new_write": lambda t, _: write_apart(t),
    "duckdb": lambda _, catalog: insert_by_duckdb(catalog),
}


def write_apart(table: tf.Table) -> None:
    write = table.new_write()
    table.commit(write, [write.write(bare(2))])


def insert_by_duckdb(catalog: tf.Catalog) -> None:
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, catalog, name="lake")
        tf.duckdb.sql(connection, "INSERT INTO lake.db.t BY NAME SELECT 2 AS id, 'new' AS v")


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("verb", VERBS)
def test_row_without_the_struct_stores_null(tmp_path: Path, verb: str, version: str) -> None:
    catalog = catalog_at(tmp_path)
    table = new_table(catalog, version, *COLUMNS)
    table.append([FULL])
    VERBS[verb](table, catalog)
    rows = table.refresh().scan(columns=["id", "st", "deep"]).to_arrow().sort_by("id").to_pylist()
    assert rows == [{name: FULL[name] for name in ("id", "st", "deep")}, {"id": 2, "st": None, "deep": None}]
    assert not table.maintenance.verify(deep=True).findings


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize(
    "change",
    [
        lambda t: (t.delete_prefix({"id": 1}), t.maintenance.convert_deletes(), t.maintenance.compact()),
        lambda t: t.upsert(pa.table({"id": [2], "v": ["b"]}), missing="keep"),
        lambda t: (t.set_properties({"write.delete.mode": "copy-on-write"}), t.delete("v = 'a'")),
        lambda t: (t.delete("id = 1"), t.overwrite(pa.table({"id": [2], "v": ["b"]}), where="id = 2")),
    ],
    ids=["compact", "keep", "copy-on-write", "overwrite"],
)
def test_rows_older_than_the_struct_can_be_rewritten(
    tmp_path: Path, change: Callable[[tf.Table], Any], version: str
) -> None:
    table = new_table(catalog_at(tmp_path), version)
    table.append(pa.table({"id": [1, 2], "v": ["a", "b"]}))
    table.append(pa.table({"id": [3], "v": ["c"]}))
    with table.update_schema() as update:
        update.add_column("st", STRUCT)
        update.add_column("deep", DEEP)
    change(table)
    rows = table.scan("id > 1").to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": row, "v": v, "st": None, "deep": None} for row, v in ((2, "b"), (3, "c"))]


def test_null_in_required_field_of_non_null_struct_is_rejected(tmp_path: Path) -> None:
    table = new_table(catalog_at(tmp_path), "2", *COLUMNS)
    with pytest.raises(RowsRefusedError):
        table.append([{"id": 1, "st": {"f": None}}])
    with pytest.raises(RowsRefusedError):
        table.append([{"id": 1, "deep": {**FULL["deep"], "l": [None]}}])
    assert table.scan().count() == 0


def test_empty_struct_is_rejected_at_definition(tmp_path: Path) -> None:
    """FM-22: Parquet cannot hold one."""
    catalog = catalog_at(tmp_path)
    empty = pa.schema([("id", pa.int64()), ("s", pa.struct([])), ("l", pa.list_(pa.struct([])))])
    with pytest.raises(InvalidArgumentError, match=r"'s' has the Arrow type struct<>.*'l\.element' has the Arrow"):
        catalog.create_table("db.none", empty)
    with pytest.raises(UnsupportedFeatureError, match="'s' is a struct without fields"):
        catalog.create_table("db.none", Schema(NestedField(1, "s", StructType(), required=False)))
    fields = (
        NestedField(3, "st", StructType(NestedField(4, "a", LongType(), required=False)), required=False),
        NestedField(5, "ls", ListType(6, StructType(NestedField(7, "a", LongType(), required=False))), required=False),
    )
    table = new_table(catalog, "2", *fields)
    for path, column in (("st.a", "'st'"), ("ls.element.a", "'ls.element'")):
        refused = pytest.raises(InvalidArgumentError, match=f"column {column} would become a struct without")
        with refused, table.update_schema() as update:
            update.delete_column(path)
    refused = pytest.raises(UnsupportedFeatureError, match="'none' is a struct without fields")
    with refused, table.update_schema() as update:
        update.add_column("none", StructType())
    table.append([{"id": 1, "st": {"a": 1}, "ls": [{"a": 1}]}])
    with table.update_schema() as update:
        update.delete_column("st.a")
        update.add_column(("st", "b"), StringType())
        update.delete_column("ls")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "v": None, "st": {"b": None}}]
