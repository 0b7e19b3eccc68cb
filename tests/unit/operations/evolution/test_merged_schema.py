"""SP-82 in Python: new columns in the written rows are added to the table, and types are widened."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from long_forms import every

import tableformat as tf
from tableformat.errors import InvalidArgumentError, SchemaMismatchError


@pytest.fixture(params=every(2, ["3", "2"]))
def catalog(tmp_path: Path, request: pytest.FixtureRequest) -> tf.Catalog:
    return tf.open_catalog(tmp_path / "lake", **{"table-default.format-version": request.param})


@pytest.fixture
def table(catalog: tf.Catalog) -> tf.Table:
    kinds = pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            pa.field("price", pa.float32()),
            pa.field("total", pa.decimal128(5, 2)),
            pa.field("at", pa.struct([pa.field("x", pa.int32())])),
            pa.field("tags", pa.list_(pa.struct([pa.field("x", pa.int32())]))),
            pa.field("names", pa.map_(pa.string(), pa.struct([pa.field("x", pa.int32())]))),
        ]
    )
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", kinds, key=["id"], partition_by=["bucket(4, id)"])
    table.append({"id": 1, "price": 0.5, "total": None, "at": {"x": 1}, "tags": [{"x": 1}], "names": [("k", {"x": 1})]})
    return table


WIDE = pa.struct([pa.field("y", pa.string(), nullable=False), pa.field("x", pa.int64())])
GIVEN = pa.schema(
    [
        pa.field("new", pa.list_(WIDE)),
        pa.field("id", pa.int64()),
        pa.field("price", pa.float64()),
        pa.field("total", pa.decimal128(9, 2)),
        pa.field("at", WIDE),
        pa.field("tags", pa.list_(WIDE)),
        pa.field("names", pa.map_(pa.string(), WIDE)),
    ]
)


def test_columns_are_added_and_types_widened_at_every_depth(table: tf.Table) -> None:
    row = {"y": "n", "x": 2**40}
    rows = pa.Table.from_pylist(
        [{"new": [row], "id": 2**40, "price": 0.1, "total": None, "at": row, "tags": [row], "names": [("k", row)]}],
        schema=GIVEN,
    )
    table.merge_schema(rows.schema)
    table.append(rows)

    assert table.schema.names == ["id", "price", "total", "at", "tags", "names", "new"]
    assert table.schema.field("total").type == pa.decimal128(9, 2)
    merged = {"x": 2**40, "y": "n"}
    old = {"x": 1, "y": None}
    first, second = sorted(table.scan().to_arrow().to_pylist(), key=lambda each: each["id"])
    assert (first["id"], first["price"], first["at"], first["tags"]) == (1, 0.5, old, [old])
    assert (first["names"], first["new"]) == ([("k", old)], None)
    assert (second["id"], second["price"], second["at"], second["tags"]) == (2**40, 0.1, merged, [merged])
    assert (second["names"], second["new"]) == ([("k", merged)], [{"y": "n", "x": 2**40}])
    assert table.get((1,)) == first, "the key and its buckets are found in the wider type"


def test_narrower_and_missing_columns_do_not_change_the_schema(table: tf.Table) -> None:
    before = table.iceberg.metadata_location
    table.merge_schema(pa.schema([("id", pa.int16()), ("price", pa.float16()), ("total", pa.decimal128(3, 2))]))
    assert table.refresh().iceberg.metadata_location == before


def test_unpromotable_types_are_not_changed(table: tf.Table) -> None:
    """A cast would lose values, so the rows are rejected when they are written."""
    before = table.schema
    rows = pa.table({"id": ["x"], "total": ["1.00"]})
    table.merge_schema(rows.schema)
    assert table.schema.equals(before)
    with pytest.raises(SchemaMismatchError):
        table.append(rows)


def test_write_by_name_merges_on_request(catalog: tf.Catalog, table: tf.Table) -> None:
    with pytest.raises(tf.errors.UnknownColumnError):
        catalog.write("db.t", {"id": 7, "note": "new"})
    catalog.write("db.t", {"id": 7, "note": "new"}, schema_mode="merge")
    assert table.refresh().get((7,))["note"] == "new"
    with pytest.raises(InvalidArgumentError):
        catalog.write("db.t", {"id": 7}, schema_mode="any")  # type: ignore[arg-type]
