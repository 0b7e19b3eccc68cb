"""Struct fields with a default that were added after the data file was written: rows whose struct is null stay null
(v3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.table.snapshots import Operation
from pyiceberg.types import LongType, NestedField, StructType

from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.table import Table
from tableformat.testing.raw_files import foreign_equality_delete
from tableformat.write.context import WriteContext

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.struct([("x", pa.int64())]))])
ROWS = [{"id": 1, "at": {"x": 1}}, {"id": 2, "at": None}, {"id": 3, "at": {"x": None}}]
FILLERS = 40_000
"""Rows of a file that is too large to be read as a whole for its deletes."""


@pytest.fixture(params=[0, FILLERS], ids=["small", "large"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Table]:
    fillers = [{"id": number * 7919 % 999_983 + 10, "at": {"x": None}} for number in range(request.param)]
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA, properties={"format-version": "3"})
        table.append(pa.Table.from_pylist([*ROWS, *fillers], schema=SCHEMA))
        with table.iceberg.update_schema() as update:
            update.add_column(("at", "z"), LongType(), default_value=7)
            update.add_column("later", StructType(NestedField(100, "y", LongType(), required=False)))
        with table.iceberg.update_schema() as update:
            update.add_column(("later", "z"), LongType(), default_value=7)
        table.refresh()
        yield table


def ids(table: Table, where: str | None = None) -> list[int]:
    found = table.scan(where=where, columns=["id"]).to_arrow()["id"].to_pylist()
    return sorted(each for each in found if each < 10)


def delete_where_equal(table: Table, struct: str, value: int | None) -> None:
    """An equality delete of another writer, by the field of the struct."""
    schema = table.metadata.schema()
    delete = foreign_equality_delete(
        WriteContext.of(table.metadata, table.iceberg.io),
        [{"id": 0, struct: {"z": value}}],
        schema,
        equality_columns=[struct],
        spec_id=0,
    )
    by_field = replace(delete, equality_ids=(schema.find_field(f"{struct}.z").field_id,))
    commit_change(table.iceberg, TableChange(operation=Operation.DELETE, added_delete_files=(by_field,)))
    table.refresh()


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [("at", 7, [2]), ("at", None, [1, 3]), ("at", 8, [1, 2, 3]), ("later", 7, [1, 2, 3]), ("later", None, [])],
)
def test_equality_delete_uses_struct_field_default_like_a_scan(
    table: Table, field: str, value: int | None, kept: list[int]
) -> None:
    """DA-6: null if the struct is null, the default otherwise; a struct that the file lacks is null in every row."""
    alike = f"{field}.z IS NULL" if value is None else f"{field}.z = {value}"
    assert ids(table, alike) == [each for each in [1, 2, 3] if each not in kept]
    delete_where_equal(table, field, value)
    assert ids(table) == kept


def test_deletes_of_defaulted_and_stored_struct_fields_combine(table: Table) -> None:
    """DA-2."""
    delete_where_equal(table, "at", None)
    delete_where_equal(table, "at", 7)
    assert ids(table) == []
