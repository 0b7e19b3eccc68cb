"""Every engine reads nested rows of batches that begin at an offset (DuckDB 2.0 rejects some of them if unchanged)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.scan.nested_offsets import struct_offset_remover

INNER = pa.struct([("b", pa.int64()), ("c", pa.string())])
TYPES: dict[str, pa.DataType] = {
    "struct": pa.struct([("a", pa.int64())]),
    "struct in struct": pa.struct([("a", pa.int64()), ("t", INNER)]),
    "three structs": pa.struct([("t", pa.struct([("u", INNER)]))]),
    "structs in a list in a struct": pa.struct([("l", pa.list_(pa.struct([("t", INNER)])))]),
    "structs in a list": pa.list_(pa.struct([("t", INNER)])),
    "structs in a map": pa.map_(pa.string(), pa.struct([("t", INNER)])),
    "list in structs": pa.struct([("t", pa.struct([("l", pa.list_(pa.int64()))]))]),
}


def value(data_type: pa.DataType, number: int) -> Any:
    """Different in each row; some nulls on every level."""
    if pa.types.is_struct(data_type):
        fields = {field.name: value(field.type, number + place) for place, field in enumerate(data_type)}
        return None if number % 7 == 6 else fields
    if pa.types.is_map(data_type):
        return [("k", value(data_type.item_type, number))]
    if pa.types.is_list(data_type):
        return [value(data_type.value_type, number)] * (number % 3)
    return str(number) if pa.types.is_string(data_type) else number


def table_of(tmp_path: Path, data_type: pa.DataType, row_count: int = 30) -> tuple[tf.Table, list[Any]]:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", data_type)])
    rows = [{"id": number, "x": value(data_type, number)} for number in range(row_count)]
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", schema, key=["id"])
    table.append(pa.Table.from_pylist(rows, schema=schema))
    table.delete("id < 3", mode="scan")
    return table, [row["x"] for row in rows[3:]]


def as_told(rows: list[tuple[Any]], data_type: pa.DataType) -> list[Any]:
    """The rows that DuckDB returns, with maps in pyarrow's form."""
    return [list(row.items()) if pa.types.is_map(data_type) and row is not None else row for (row,) in rows]


@pytest.mark.parametrize("kind", TYPES)
def test_duckdb_reads_nested_rows_with_deleted_first_rows(tmp_path: Path, kind: str) -> None:
    """`attach`, `to_duckdb`, and DuckDB over a table, a stream and a dataset."""
    table, expected = table_of(tmp_path, TYPES[kind])
    scan = table.scan()
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, table.catalog, name="lake")
        doors = {
            "attach": connection.sql("SELECT x FROM lake.db.t ORDER BY id"),
            "to_duckdb": scan.to_duckdb(connection).order("id").project("x"),
            "to_arrow": connection.from_arrow(scan.to_arrow()).order("id").project("x"),
            "to_batches": connection.from_arrow(scan.to_batches()).order("id").project("x"),
            "small batches": connection.from_arrow(scan.to_dataset().scanner(batch_size=4).to_reader())
            .order("id")
            .project("x"),
            "changes": connection.from_arrow(table.changes(columns=["id", "x", "_change_type"]).to_arrow())
            .filter("_change_type = 'insert' AND id >= 3")
            .order("id")
            .project("x"),
        }
        for door, relation in doors.items():
            assert as_told(relation.fetchall(), TYPES[kind]) == expected, door


@pytest.mark.parametrize("kind", TYPES)
def test_struct_offset_removal_keeps_values_and_types(kind: str) -> None:
    values = [value(TYPES[kind], number) for number in range(30)]
    whole = pa.table({"n": range(30), "x": pa.array(values, TYPES[kind])})
    remove = struct_offset_remover(whole.schema)
    for start in (0, 1, 5, 30):
        rows = pa.concat_tables([whole.slice(start), whole.slice(3, 4)])
        moved = remove(rows)
        assert moved.schema == rows.schema
        assert moved.to_pylist() == rows.to_pylist()
        moved.validate(full=True)
        for batch in rows.to_batches():
            assert remove(batch).to_pylist() == batch.to_pylist()


def test_struct_offset_removal_keeps_required_fields() -> None:
    leaf = pa.field("b", pa.int64(), nullable=False)
    inner = pa.field("t", pa.struct([leaf]), nullable=False)
    schema = pa.schema([pa.field("x", pa.struct([inner]), nullable=False)])
    rows = pa.Table.from_pylist([{"x": {"t": {"b": number}}} for number in range(5)], schema=schema).slice(2)
    moved = struct_offset_remover(schema)(rows)
    assert (moved.schema, moved.to_pylist()) == (schema, rows.to_pylist())
