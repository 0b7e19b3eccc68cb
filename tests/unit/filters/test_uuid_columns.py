"""UUID columns, for which pyarrow has no kernels: filters, keys and nested fields."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import InvalidPredicateError
from tableformat.testing.table_files import live_delete_files
from tableformat.testing.table_rows import live_values

IDS = [UUID(int=first << 120) for first in (0x10, 0x7F, 0x80, 0xF0)]
SCHEMA = pa.schema(
    [
        pa.field("u", pa.uuid(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("o", pa.uuid()),
        pa.field("s", pa.struct([pa.field("u", pa.uuid()), pa.field("x", pa.int64())])),
        pa.field("l", pa.list_(pa.uuid())),
    ]
)


def uuids(values: list[UUID | None]) -> pa.Array:
    return pa.array(values, pa.uuid())


def all_rows() -> pa.Table:
    nested = pa.StructArray.from_arrays([uuids(IDS), pa.array(range(4))], fields=list(SCHEMA.field("s").type))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3, 4], pa.int32()), uuids(IDS))
    columns = [uuids(IDS), pa.array(range(4)), uuids([None, *IDS[1:]]), nested, lists]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table("db.t", SCHEMA, key=["u", "n"])
    created.append(all_rows())
    return created


FILTERS = [
    (f"u = '{IDS[1]}'", [1]),
    (f"u <> '{IDS[1]}'", [0, 2, 3]),
    (f"u < '{IDS[2]}'", [0, 1]),
    (f"u <= '{IDS[2]}'", [0, 1, 2]),
    (f"u > '{IDS[2]}'", [3]),
    (f"u >= '{IDS[2]}'", [2, 3]),
    (f"u IN ('{IDS[0]}', '{IDS[3]}')", [0, 3]),
    (f"u NOT IN ('{IDS[0]}', '{IDS[3]}')", [1, 2]),
    (f"u BETWEEN '{IDS[1]}' AND '{IDS[2]}'", [1, 2]),
    (f"NOT u = '{IDS[1]}' OR n = 1", [0, 1, 2, 3]),
    (f"u = UUID '{IDS[1]}'", [1]),
    (f"u = CAST('{IDS[1]}' AS UUID)", [1]),
    (f"o = '{IDS[1]}'", [1]),
    (f"o <> '{IDS[1]}'", [2, 3]),
    ("o IS NULL", [0]),
    (f"s.u >= '{IDS[2]}'", [2, 3]),
    (f"s.u IN ('{IDS[0]}', '{IDS[2]}')", [0, 2]),
]


@pytest.mark.parametrize(("where", "expected"), FILTERS)
def test_uuid_filters_compare_unsigned_bytes(table: tf.Table, where: str, expected: list[int]) -> None:
    """The same as in DuckDB and Spark, in scans, counts and the change feed."""
    assert live_values(table, "n", where=where, columns=["n"]) == expected
    assert table.scan(where=where).count() == len(expected)
    assert sorted(table.changes(where=where, columns=["n"]).to_arrow()["n"].to_pylist()) == expected
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, table.catalog, name="lake")
        assert sorted(connection.sql(f"SELECT n FROM lake.db.t WHERE {where}").fetchall()) == [(n,) for n in expected]


@pytest.mark.parametrize("mode", ["auto", "scan", "range", "equality"])
@pytest.mark.parametrize("where", [f"u = '{IDS[1]}'", f"u IN ('{IDS[1]}', '{IDS[3]}')"])
def test_deletes_of_every_kind_on_uuid_keys(table: tf.Table, mode: str, where: str) -> None:
    gone = {1} if "=" in where else {1, 3}
    table.delete(where, mode=mode)
    assert set(table.scan().to_arrow()["n"].to_pylist()) == {0, 1, 2, 3} - gone


def test_invalid_uuid_literal_raises_library_error(table: tf.Table) -> None:
    for where in ("u = 'abc'", "u LIKE '1%'", "u > 5"):
        with pytest.raises(InvalidPredicateError):
            table.scan(where=where).to_arrow()


@pytest.mark.parametrize("literal", [pa.scalar(IDS[1], pa.uuid()), pa.scalar(IDS[1].bytes, pa.binary(16))])
def test_datasets_accept_uuid_filters(table: tf.Table, literal: pa.Scalar) -> None:
    found = table.scan().to_dataset().to_table(columns=["n"], filter=ds.field("u") >= literal)
    assert sorted(found["n"].to_pylist()) == [1, 2, 3]


def test_empty_result_with_nested_uuid_columns(table: tf.Table) -> None:
    empty = table.scan(where="n > 99").to_arrow()
    assert (empty.schema, empty.num_rows) == (table.scan().schema, 0)


def test_struct_with_uuid_missing_in_older_files_is_null(table: tf.Table) -> None:
    from pyiceberg.types import LongType, NestedField, StructType, UUIDType

    added = StructType(NestedField(100, "u", UUIDType()), NestedField(101, "x", LongType()))
    with table.update_schema() as update:
        update.add_column("later", added)
    assert table.refresh().scan(columns=["later"]).to_arrow()["later"].null_count == 4


def test_equality_delete_entries_have_no_uuid_bounds(table: tf.Table) -> None:
    """Iceberg's Java library orders uuids as two signed numbers and would pass over the delete file."""
    table.delete_rows([{"u": IDS[1], "n": 1}, {"u": IDS[3], "n": 3}])
    (delete,) = live_delete_files(table)
    assert delete.lower_bounds.keys() == delete.upper_bounds.keys() == {2}
    assert delete.null_value_counts.keys() >= {1, 2}
    assert live_values(table, "n") == [0, 2]
