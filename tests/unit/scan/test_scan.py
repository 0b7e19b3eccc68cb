"""Scans end to end on files of this library: every result form returns the same rows."""

from __future__ import annotations

import datetime as dt
import gc
import threading
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestampType
from scan_tables import TableBuilder

from tableformat.errors import CorruptFileError, InvalidArgumentError, InvalidPredicateError, UnknownColumnError
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.scan import Scan

SCHEMA = Schema(
    NestedField(1, "id", StringType(), required=True),
    NestedField(2, "n", LongType(), required=True),
    NestedField(3, "name", StringType(), required=False),
    NestedField(4, "at", TimestampType(), required=False),
)


def rows(*keys: tuple[str, int]) -> list[dict[str, object]]:
    return [{"id": id_, "n": n, "name": f"{id_}-{n}", "at": dt.datetime(2024, 1, 1, n % 24)} for id_, n in keys]


def keys(table: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """a1 a2 b1 b2 c1, then prefix a deleted, a9 added, b2 deleted by equality, c1 by position."""
    builder = TableBuilder(tmp_path, SCHEMA, key=["id", "n"])
    builder.append(rows(("a", 1), ("a", 2), ("b", 1), ("b", 2)))
    (second,) = builder.append(rows(("c", 1), ("c", 2)))
    builder.delete_prefixes(["id", "n"], [{"id": "a"}])
    builder.append(rows(("a", 9)))
    builder.delete_rows(pa.table({"id": ["b"], "n": [2]}))
    builder.delete_positions(second, [0])
    return builder


ALIVE = [("a", 9), ("b", 1), ("c", 2)]


def test_all_delete_kinds_apply_and_later_rows_are_kept(table: TableBuilder) -> None:
    """DA-1, DA-2, RD-2: rows added after their range delete are visible."""
    assert keys(table.scan().to_arrow()) == ALIVE


def test_all_result_forms_have_the_same_rows(table: TableBuilder) -> None:
    scan = table.scan()
    arrow = scan.to_arrow()
    assert scan.to_batches().read_all().sort_by("id") == arrow.sort_by("id")
    assert scan.to_arrow_batch_reader().read_all().sort_by("id") == arrow.sort_by("id")
    assert scan.to_dataset().to_table().sort_by("id") == arrow.sort_by("id")
    assert scan.to_pandas().sort_values("id")["name"].tolist() == ["a-9", "b-1", "c-2"]
    assert sorted(scan.to_polars()["name"]) == ["a-9", "b-1", "c-2"]
    assert pa.table(scan).sort_by("id") == arrow.sort_by("id")
    with duckdb.connect() as connection:
        relation = scan.to_duckdb(connection, name="calendars")
        assert relation.order("id").fetchall() == connection.sql("FROM calendars ORDER BY id").fetchall()
        assert connection.sql("SELECT name FROM calendars ORDER BY 1").fetchall() == [("a-9",), ("b-1",), ("c-2",)]
    assert scan.count() == 3


def test_filter_columns_need_not_be_selected(table: TableBuilder) -> None:
    found = table.scan("n = 1 OR n = 9", columns=["name"]).to_arrow()
    assert sorted(found["name"].to_pylist()) == ["a-9", "b-1"]
    assert found.column_names == ["name"]


def test_columns_have_the_requested_order(table: TableBuilder) -> None:
    scan = table.scan(columns=["n", "id"])
    assert scan.schema.names == ["n", "id"]
    assert scan.to_arrow().column_names == ["n", "id"]


def test_schema_is_plain_and_the_same_for_every_batch(table: TableBuilder) -> None:
    reader = table.scan().to_batches()
    expected = pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("n", pa.int64(), nullable=False),
            pa.field("name", pa.string()),
            pa.field("at", pa.timestamp("us")),
        ]
    )
    assert reader.schema.equals(expected, check_metadata=True)
    assert all(batch.schema.equals(expected, check_metadata=True) for batch in reader)


def test_filters_and_selections_combine(table: TableBuilder) -> None:
    scan = table.scan(EqualTo("id", "b")).filter("n < 5").select(["n"])
    assert scan.to_arrow().to_pydict() == {"n": [1]}
    assert table.scan("id > 'a'").filter("id < 'c'").count() == 1


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 10])
def test_limit_returns_at_most_that_many_rows(table: TableBuilder, limit: int) -> None:
    scan = table.scan(limit=limit)
    found = keys(scan.to_arrow())
    assert len(found) == min(limit, 3)
    assert set(found) <= set(ALIVE)
    assert scan.count() == scan.to_dataset().count_rows() == min(limit, 3)


def test_counting_without_deletes_opens_no_data_file(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, SCHEMA, key=["id", "n"])
    (data,) = builder.append(rows(("a", 1), ("b", 1)))
    Path(data.file_path).unlink()
    assert builder.scan().count() == 2
    assert builder.scan("id >= 'a'").count() == 2
    assert builder.scan("id = 'zzz'").count() == 0


def test_table_without_snapshots_has_no_rows(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, SCHEMA)
    scan = Scan(SnapshotView(builder.metadata, builder.io, None, SCHEMA))
    assert scan.to_arrow().num_rows == scan.count() == 0
    assert scan.to_arrow().schema == scan.schema
    assert scan.plan().tasks == ()
    assert scan.to_dataset().head(3).num_rows == 0


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"columns": ["nmae"]}, UnknownColumnError, "Did you mean 'name'"),
        ({"columns": ["id", "id"]}, InvalidArgumentError, "twice"),
        ({"columns": "id"}, InvalidArgumentError, "list of names"),
        ({"where": "idd = 'a'"}, UnknownColumnError, "Did you mean 'id'"),
        ({"where": "n = 'a'"}, InvalidPredicateError, "'n'"),
        ({"limit": -1}, InvalidArgumentError, "limit"),
        ({"limit": True}, InvalidArgumentError, "limit"),
    ],
)
def test_invalid_arguments_are_rejected_before_reading(
    table: TableBuilder, arguments: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        table.scan(**arguments)


@pytest.mark.parametrize("form", ["to_arrow", "to_batches", "count"])
@pytest.mark.parametrize("damage", ["missing", "cut off", "not Parquet"])
def test_a_damaged_data_file_is_named(tmp_path: Path, damage: str, form: str) -> None:
    """DA-8's sister: rows that cannot be read are an error, not absent."""
    builder = TableBuilder(tmp_path, SCHEMA, key=["id", "n"])
    (data,) = builder.append(rows(("a", 1), ("b", 1)))
    path = Path(data.file_path)
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-20] if damage == "cut off" else b"no parquet at all")
    scan = builder.scan("name = 'a-1'")
    with pytest.raises(CorruptFileError, match=path.name):
        (list(scan.to_batches()) if form == "to_batches" else getattr(scan, form)())


def test_a_damaged_delete_file_fails_the_scan(tmp_path: Path) -> None:
    """DA-8: a damaged file never counts as 'no deletes'."""
    builder = TableBuilder(tmp_path, SCHEMA, key=["id", "n"])
    builder.append(rows(("a", 1), ("b", 1)))
    (delete,) = builder.delete_rows(pa.table({"id": ["a"], "n": [1]}))
    Path(delete.file_path).write_bytes(b"damaged")
    with pytest.raises(CorruptFileError, match=Path(delete.file_path).name):
        builder.scan().to_arrow()


def test_unfinished_stream_stops_its_threads(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, SCHEMA, key=["id", "n"])
    for number in range(20):
        builder.append(rows(("a", number)))
    reader = builder.scan().to_batches()
    reader.read_next_batch()
    del reader
    gc.collect()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("scan")] == []


def test_polars_and_duckdb_push_down_into_the_dataset(table: TableBuilder) -> None:
    dataset = table.scan().to_dataset()
    lazy = pl.scan_pyarrow_dataset(dataset).filter(pl.col("n") == 9).select("name")
    assert lazy.collect().rows() == [("a-9",)]
    with duckdb.connect() as connection:
        found = connection.sql("SELECT name FROM dataset WHERE id IN ('a', 'b') AND n < 5").fetchall()
        assert found == [("b-1",)]


def test_promoted_types_and_added_and_dropped_columns(tmp_path: Path) -> None:
    old = Schema(
        NestedField(1, "id", StringType(), required=True),
        NestedField(2, "n", IntegerType(), required=True),
        NestedField(3, "gone", StringType(), required=False),
        schema_id=0,
    )
    builder = TableBuilder(tmp_path, old, key=["id"])
    builder.append([{"id": "a", "n": 1, "gone": "x"}])
    new = Schema(
        NestedField(2, "number", LongType(), required=True),
        NestedField(1, "id", StringType(), required=True),
        NestedField(5, "added", IntegerType(), required=False, initial_default=7, write_default=8),
        NestedField(6, "gone", IntegerType(), required=False),
        schema_id=1,
        identifier_field_ids=[1],
    )
    builder.older_schemas, builder.schema = [builder.schema], new
    builder.append([{"id": "b", "number": 2**40, "added": None, "gone": 3}])
    found = builder.scan().to_arrow().sort_by("id")
    assert found.to_pylist() == [
        {"number": 1, "id": "a", "added": 7, "gone": None},
        {"number": 2**40, "id": "b", "added": None, "gone": 3},
    ]
    assert builder.scan("added = 7", columns=["id"]).to_arrow().to_pylist() == [{"id": "a"}]
    assert builder.scan("gone IS NULL", columns=["id"]).to_arrow().to_pylist() == [{"id": "a"}]
    assert builder.scan("number > 5", columns=["id"]).to_arrow().to_pylist() == [{"id": "b"}]
