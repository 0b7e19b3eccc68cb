"""`Catalog.write`, `read` and `sql`: tables by name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import tableformat as tf
from tableformat.errors import AlreadyExistsError, InvalidArgumentError

PEOPLE = pa.table({"id": [1, 2], "name": ["ann", "bob"]})


@pytest.fixture
def catalog(tmp_path: Path) -> tf.Catalog:
    return tf.open_catalog(tmp_path / "lake")


def rows_of(catalog: tf.Catalog, name: str = "hr.people") -> list[tuple[object, ...]]:
    rows = catalog.read(name).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.mark.parametrize(
    "rows",
    [
        PEOPLE,
        PEOPLE.to_pylist(),
        PEOPLE.to_pandas(),
        pl.DataFrame(PEOPLE),
        pl.DataFrame(PEOPLE).lazy(),
        PEOPLE.to_reader(),
        ds.dataset(PEOPLE),
    ],
    ids=["arrow", "dicts", "pandas", "polars", "polars lazy", "reader", "dataset"],
)
def test_first_write_creates_namespace_and_table(catalog: tf.Catalog, rows: object) -> None:
    assert catalog.write("hr.people", rows, key=["id"]).added_row_count == 2
    assert rows_of(catalog) == [(1, "ann"), (2, "bob")]
    assert catalog.load_table("hr.people").key == ("id",)


def test_modes_of_an_existing_table(catalog: tf.Catalog) -> None:
    catalog.write("hr.people", PEOPLE, key=["id"])
    new = pa.table({"id": [2, 3], "name": ["eve", "tom"]})

    catalog.write("hr.people", new, mode="upsert")
    assert rows_of(catalog) == [(1, "ann"), (2, "eve"), (3, "tom")]
    catalog.write("hr.people", {"id": 4, "name": None}, mode="append")
    assert len(catalog.load_table("hr.people")) == 4
    catalog.write("hr.people", new, mode="overwrite")
    assert rows_of(catalog) == [(2, "eve"), (3, "tom")]
    with pytest.raises(AlreadyExistsError):
        catalog.write("hr.people", new, mode="error")
    assert rows_of(catalog) == [(2, "eve"), (3, "tom")]


def test_directory_of_parquet_files(catalog: tf.Catalog, tmp_path: Path) -> None:
    orders = pa.table({"id": [1, 2, 3], "country": ["DE", "FR", "DE"]})
    ds.write_dataset(
        orders, tmp_path / "orders", format="parquet", partitioning=["country"], partitioning_flavor="hive"
    )
    catalog.write("shop.orders", tmp_path / "orders", partition_by=["country"])
    assert rows_of(catalog, "shop.orders") == [(1, "DE"), (2, "FR"), (3, "DE")]


@pytest.mark.parametrize(
    "definition",
    [{"key": ["name"]}, {"partition_by": ["name"]}, {"properties": {"tableformat.upkeep": "writer"}}],
    ids=["key", "partitions", "properties"],
)
def test_different_definition_of_existing_table_is_rejected(catalog: tf.Catalog, definition: dict[str, object]) -> None:
    catalog.write("hr.people", PEOPLE, key=["id"], partition_by=["bucket(4, id)"])
    with pytest.raises(InvalidArgumentError):
        catalog.write("hr.people", PEOPLE, **definition)  # type: ignore[arg-type]
    catalog.write("hr.people", PEOPLE, mode="overwrite", key=["id"], partition_by=["bucket(4, id)"])
    assert rows_of(catalog) == [(1, "ann"), (2, "bob")]


@pytest.mark.parametrize("rows", ["missing.parquet", {}, []], ids=["path", "dict", "list"])
def test_rows_without_columns_create_nothing(catalog: tf.Catalog, rows: object) -> None:
    with pytest.raises(InvalidArgumentError):
        catalog.write("hr.people", rows)
    assert catalog.list_namespaces() == []


def test_upsert_into_a_new_table_needs_a_key(catalog: tf.Catalog) -> None:
    with pytest.raises(InvalidArgumentError):
        catalog.write("hr.people", PEOPLE, mode="upsert")
    assert catalog.list_namespaces() == []


def test_named_batch_is_written_once(catalog: tf.Catalog) -> None:
    for _ in range(2):
        result = catalog.write("hr.people", PEOPLE, application_id="loader", batch_id=1)
    assert result.already_applied
    assert rows_of(catalog) == [(1, "ann"), (2, "bob")]


def test_sql_reads_and_changes(catalog: tf.Catalog) -> None:
    catalog.write("hr.people", PEOPLE, key=["id"])
    relation = catalog.sql("SELECT name FROM hr.people ORDER BY id")
    catalog.sql("DELETE FROM hr.people WHERE id = 1")
    catalog.sql("INSERT INTO hr.people VALUES (3, 'tom')")

    assert relation.fetchall() == [("ann",), ("bob",)], "a relation keeps its snapshots"
    assert catalog.sql("SELECT name FROM hr.people ORDER BY id").fetchall() == [("bob",), ("tom",)]


def test_table_converts_to_pandas_and_polars(catalog: tf.Catalog) -> None:
    catalog.write("hr.people", PEOPLE, key=["id"])
    table = catalog.load_table("hr.people")
    assert table.head(1).num_rows == 1
    assert table.head(5, columns=["name"]).column_names == ["name"]
    pd.testing.assert_frame_equal(table.to_pandas(), PEOPLE.to_pandas())
    assert table.to_polars().equals(pl.DataFrame(PEOPLE))
    lazy = table.to_polars(lazy=True)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.filter(pl.col("id") == 2).select("name").collect()["name"].to_list() == ["bob"]
    table.delete_prefix({"id": 1})
    assert len(table.refresh()) == 1
    table.delete_prefix({"id": 2})
    assert len(table.refresh()) == 0
    assert table, "an empty table is not false"
