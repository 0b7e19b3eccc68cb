"""FM-35: names of columns that readers add are refused for new columns, at every entry point."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from renamed_columns import rename_as_another_writer
from typer.testing import CliRunner

import tableformat as tf
from spark_ext.service.registry import Request, handler_of
from spark_ext.service.session import Session
from tableformat.cli.main import app
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.new_names import refuse_reserved_columns

RESERVED = [
    "_file",
    "_pos",
    "_spec_id",
    "_partition",
    "_deleted",
    "_row_id",
    "_last_updated_sequence_number",
    "_change_type",
    "_change_ordinal",
    "_commit_snapshot_id",
    "_commit_version",
    "_commit_timestamp",
    "__tableformat_order",
    "_FILE",
    "_Row_Id",
]
FREE = ["file", "pos", "_op", "_ts", "_row_index", "__row", "_files", "row_id", "file_path", "tableformat_order"]
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
ROWS = pa.table({"id": [1], "_pos": [2]}, schema=pa.schema([SCHEMA.field("id"), ("_pos", pa.int64())]))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    with tf.open_catalog(str(tmp_path / "lake")) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", SCHEMA, key=["id"])
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    return tmp_path / "lake"


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_name_is_refused(name: str) -> None:
    """FM-35."""
    with pytest.raises(InvalidArgumentError, match=f"'{name}' has a reserved name: .*Choose another name"):
        refuse_reserved_columns(Schema(NestedField(1, name, LongType())))


@pytest.mark.parametrize("name", FREE)
def test_other_name_is_accepted(name: str) -> None:
    refuse_reserved_columns(Schema(NestedField(1, name, LongType())))


def test_error_lists_all_columns() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'_pos' has .*'_change_type' has .*change feed"):
        refuse_reserved_columns(Schema(NestedField(1, "_pos", LongType()), NestedField(2, "_change_type", LongType())))


def _update_schema(change: Callable[[Any], Any]) -> Callable[[tf.Catalog], None]:
    def call(catalog: tf.Catalog) -> None:
        with catalog.load_table("db.t").update_schema() as update:
            change(update)

    return call


ENTRY_POINTS: dict[str, Callable[[tf.Catalog], Any]] = {
    "create_table": lambda catalog: catalog.create_table("db.new", ROWS.schema),
    "stage_table": lambda catalog: catalog.stage_table("db.new", ROWS.schema),
    "write": lambda catalog: catalog.write("db.new", ROWS),
    "write of other columns": lambda catalog: catalog.write("db.t", ROWS, schema_mode="merge"),
    "merge_schema": lambda catalog: catalog.load_table("db.t").merge_schema(ROWS.schema),
    "add_column": _update_schema(lambda update: update.add_column("_pos", LongType())),
    "rename_column": _update_schema(lambda update: update.rename_column("v", "_pos")),
    "union_by_name": _update_schema(lambda update: update.union_by_name(ROWS.schema)),
}


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_python_entry_points_reject_reserved_names(lake: Path, entry_point: str) -> None:
    with tf.open_catalog(str(lake)) as catalog:
        before = catalog.load_table("db.t").iceberg.metadata_location
        with pytest.raises(InvalidArgumentError, match="column '_pos' has a reserved name"):
            ENTRY_POINTS[entry_point](catalog)
        assert catalog.list_tables() == ["db.t"]
        assert catalog.load_table("db.t").iceberg.metadata_location == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "db.new", "id long", "_pos long"),
        ("create", "db.new", "--like", "rows.parquet"),
        ("load", "db.t", "rows.parquet", "--merge-schema"),
    ],
    ids=" ".join,
)
def test_command_line_rejects_reserved_names(lake: Path, arguments: tuple[str, ...]) -> None:
    given = [str(lake.parent / each) if each == "rows.parquet" else each for each in arguments]
    run = CliRunner(env={"TABLEFORMAT_CATALOG": str(lake)}).invoke(app, given)
    assert run.exit_code == 1
    assert "column '_pos' has a reserved name" in " ".join(run.output.split())


COLUMNS = [{"name": name, "type": "long", "nullable": True} for name in ("id", "_pos")]
NEW: dict[str, Any] = {"columns": COLUMNS, "partitioning": [], "key": [], "checks": [], "properties": {}}
ADDED = {"change": "AddColumn", "column": ["_pos"], "type": "long", "nullable": True}
RENAMED = {"change": "RenameColumn", "column": ["v"], "to": "_pos"}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "CREATE TABLE": ("create_table", {"table": ["db", "new"], **NEW}),
    "CREATE TABLE AS SELECT": ("stage_table", {"table": ["db", "new"], "kind": "create", **NEW}),
    "REPLACE TABLE": ("stage_table", {"table": ["db", "t"], "kind": "replace", **NEW}),
    "ADD COLUMN": ("alter_table", {"table": ["db", "t"], "changes": [ADDED]}),
    "RENAME COLUMN": ("alter_table", {"table": ["db", "t"], "changes": [RENAMED]}),
}


@pytest.mark.parametrize("statement", REQUESTS)
def test_spark_statements_reject_reserved_names(lake: Path, statement: str) -> None:
    method, arguments = REQUESTS[statement]
    session = Session.open("lake", {"warehouse": str(lake)})
    with pytest.raises(InvalidArgumentError, match="column '_pos' has a reserved name"):
        handler_of(method)(session, Request(arguments))
    assert session.catalog.load_table("db.t").schema.names == ["id", "v"]


def test_foreign_table_with_reserved_column_is_usable(lake: Path) -> None:
    """It is read and written, and its other columns can be changed; Spark can replace it by itself."""
    with tf.open_catalog(str(lake)) as catalog:
        table = catalog.load_table("db.t")
        rename_as_another_writer(table, {"v": "_pos"})
        table.append(pa.table({"id": [1, 2], "_pos": [70, 80]}, schema=table.schema))
        table.upsert(pa.table({"id": [1], "_pos": [71]}, schema=table.schema))
        with table.update_schema() as update:
            update.add_column("note", pa.string())
        assert table.scan('"_pos" > 70', columns=["_pos"]).to_arrow()["_pos"].to_pylist() == [71, 80]
        assert catalog.sql('SELECT max("_pos") FROM db.t').fetchall() == [(80,)]
        renamed = table.update_schema().rename_column("_pos", "_POS")
        with pytest.raises(InvalidArgumentError, match="'_POS' has a reserved name"):
            renamed.commit()
    session = Session.open("lake", {"warehouse": str(lake)})
    request = {**REQUESTS["REPLACE TABLE"][1], "columns": [{**each, "type": "long"} for each in COLUMNS]}
    handler_of("stage_table")(session, Request(request))


def test_struct_field_may_have_a_reserved_name(lake: Path) -> None:
    schema = pa.schema([("place", pa.struct([("_file", pa.string())]))])
    with tf.open_catalog(str(lake)) as catalog:
        table = catalog.create_table("db.files", schema)
        table.append(pa.table({"place": [{"_file": "a"}]}, schema=schema))
        assert table.changes().to_arrow().num_rows == 1
