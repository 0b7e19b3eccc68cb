"""The pyarrow dataset of a table: the filters and projections that DuckDB, Polars and pyarrow push into it, and what it
rejects."""

from __future__ import annotations

import datetime as dt
import math
import pickle
import uuid
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, StructType, TimestamptzType, UUIDType
from scan_tables import TableBuilder, partitioned

from tableformat.errors import InvalidArgumentError, InvalidPredicateError, UnknownColumnError, UnsupportedFeatureError
from tableformat.scan.dataset import LakeDataset
from tableformat.scan.scan import Scan

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "v", StringType(), required=False),
    NestedField(3, "d", DoubleType(), required=False),
    NestedField(4, "u", UUIDType(), required=False),
    NestedField(5, "at", TimestamptzType(), required=False),
    NestedField(
        6,
        "st",
        StructType(NestedField(7, "x", LongType(), required=False), NestedField(8, "y", LongType(), required=False)),
        required=False,
    ),
)


def row(id_: int) -> dict[str, Any]:
    return {
        "id": id_,
        "v": None if id_ % 4 == 3 else f"v{id_}",
        "d": [1.5, math.nan, None][id_ % 3],
        "u": uuid.UUID(int=id_),
        "at": dt.datetime(2024, 1, 1, id_, tzinfo=dt.UTC),
        "st": {"x": id_, "y": -id_},
    }


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Ids 0 to 9 in two files, 4 deleted."""
    builder = TableBuilder(tmp_path, SCHEMA, key=["id"])
    builder.append([row(number) for number in range(6)])
    builder.append([row(number) for number in range(6, 10)])
    builder.delete_prefixes(["id"], [{"id": 4}])
    return builder


ALIVE = [0, 1, 2, 3, 5, 6, 7, 8, 9]
CONDITIONS = [
    "id = 5",
    "id <> 5",
    "id IN (1, 4, 8)",
    "id NOT IN (1, 4, 8)",
    "id BETWEEN 3 AND 6",
    "v IS NULL",
    "v IS NOT NULL AND v > 'v5'",
    "v LIKE 'v%'",
    "d > 1.0",
    "d = 'NaN'::DOUBLE",
    "isnan(d)",
    "NOT (d > 1.0)",
    "d IS NULL OR d < 2",
    "st.x = 3",
    "\"at\" >= TIMESTAMPTZ '2024-01-01 08:00:00+00:00'",
    "u = '00000000-0000-0000-0000-000000000007'",
    "id + 1 = 6",
    "length(v) = 2 AND id < 3",
    "v = 'v1' OR (id > 7 AND v IS NULL)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_duckdb_filter_pushdown_selects_the_same_rows(table: TableBuilder, condition: str) -> None:
    scan = table.scan()
    with duckdb.connect() as connection:
        connection.register("lake", scan.to_dataset())
        connection.register("memory", scan.to_arrow())
        found = connection.execute(f"SELECT id FROM lake WHERE {condition} ORDER BY id").fetchall()
        assert found == connection.execute(f"SELECT id FROM memory WHERE {condition} ORDER BY id").fetchall()


def test_duckdb_counts_joins_and_aggregates(table: TableBuilder) -> None:
    with duckdb.connect() as connection:
        connection.register("lake", table.scan().to_dataset())
        assert connection.sql("SELECT count(*), min(id), max(v) FROM lake").fetchall() == [(9, 0, "v9")]
        pairs = connection.sql("SELECT count(*) FROM lake a JOIN lake b ON a.id = b.id WHERE b.id < 5").fetchall()
        assert pairs == [(4,)]
        assert connection.sql("SELECT * FROM lake WHERE id = 9").fetchall() == [
            (9, "v9", 1.5, uuid.UUID(int=9), dt.datetime(2024, 1, 1, 9, tzinfo=dt.UTC), {"x": 9, "y": -9})
        ]


@pytest.mark.parametrize(
    "condition",
    [
        pl.col("id") == 5,
        pl.col("id").is_in([1, 4, 8]),
        pl.col("v").is_null(),
        pl.col("v") > "v5",
        pl.col("d").is_nan(),
        ~(pl.col("id") > 3),
        (pl.col("id") > 3) & (pl.col("id") < 7),
        pl.col("at") >= dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC),
        pl.col("v").str.starts_with("v1"),
    ],
    ids=str,
)
def test_polars_filter_pushdown_selects_the_same_rows(table: TableBuilder, condition: pl.Expr) -> None:
    scan = table.scan()
    lazy = pl.scan_pyarrow_dataset(scan.to_dataset())
    assert sorted(lazy.filter(condition).select("id").collect()["id"]) == sorted(
        scan.to_polars().filter(condition)["id"]
    )
    assert lazy.filter(condition).select("v").head(1).collect().height == min(
        1, scan.to_polars().filter(condition).height
    )


class _Recorded(LakeDataset):
    """Remembers the scans that queries lead to."""

    def __init__(self, scan: Scan) -> None:
        super().__init__(scan)
        self.scans: list[Scan] = []

    def _scan_of(self, translation: Any, columns: list[str] | None) -> Scan:
        self.scans.append(super()._scan_of(translation, columns))
        return self.scans[-1]


def test_engine_filters_prune_files_and_partitions(tmp_path: Path) -> None:
    spec = partitioned(SCHEMA, ("id", BucketTransform(4)))
    builder = TableBuilder(tmp_path, SCHEMA, spec=spec, key=["id"])
    builder.append([row(number) for number in range(10)])
    dataset = _Recorded(builder.scan())
    with duckdb.connect() as connection:
        assert connection.sql("SELECT v FROM dataset WHERE id = 5").fetchall() == [("v5",)]
    assert pl.scan_pyarrow_dataset(dataset).filter(pl.col("id") == 6).select("v").collect().rows() == [("v6",)]
    for scan, number in zip(dataset.scans[-2:], (5, 6), strict=True):
        bucket = BucketTransform(4).transform(LongType())(number)
        assert [task.data_file.partition for task in scan.plan().tasks] == [(bucket,)]
    # DuckDB before 2.0 asks for the column of its filter too.
    assert dataset.scans[-2].schema.names in (["v"], ["id", "v"])


def test_engine_partition_filter_needs_no_row_filter(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, SCHEMA, spec=partitioned(SCHEMA, ("v", IdentityTransform())), key=["id"])
    builder.append([row(number) for number in range(10)])
    assert builder.scan().to_dataset().count_rows(filter=pc.field("v") == "v5") == 1
    assert [task.data_file.partition for task in builder.scan("v = 'v5'").plan().tasks] == [("v5",)]


def test_dataset_methods_of_pyarrow(table: TableBuilder) -> None:
    dataset = table.scan().to_dataset()
    assert dataset.count_rows() == 9
    assert dataset.count_rows(filter=pc.field("id") > 5) == 4
    assert dataset.count_rows(filter=pc.field("d") > 1.0) == len([number for number in ALIVE if number % 3 == 0])
    assert dataset.head(2, columns=["id"]).num_rows == 2
    assert dataset.take([0, 8], columns=["id"]).num_rows == 2
    assert sorted(dataset.to_table(columns=["id"], filter=pc.field("v").is_null())["id"].to_pylist()) == [3, 7]
    assert dataset.to_table(columns={"twice": pc.field("id") * 2}, filter=pc.field("id") == 9).to_pydict() == {
        "twice": [18]
    }
    assert dataset.filter(pc.field("id") > 5).filter(pc.field("id") < 8).count_rows() == 2
    assert dataset.sort_by([("id", "descending")]).to_table()["id"].to_pylist() == sorted(ALIVE, reverse=True)
    assert max(batch.num_rows for batch in dataset.to_batches(batch_size=2)) == 2
    assert sum(batch.num_rows for batch in dataset.to_batches(columns=[])) == 9


EXPRESSIONS = [
    (pc.field("id") + 1 == 6, [5]),
    ((pc.field("id") + 1 == 6) | (pc.field("id") > 8), [5, 9]),
    ((pc.field("id") > 2) & (pc.utf8_length(pc.field("v")) == 2), [5, 6, 8, 9]),
    (pc.field("st", "x") + pc.field("st", "y") == pc.field("id"), [0]),
    (pc.field("st", "x") > 7, [8, 9]),
    (pc.scalar(2) > 1, ALIVE),
    (pc.scalar(dt.timedelta(1)) == pc.scalar(dt.timedelta(1)), ALIVE),
    (pc.field(0) > 6, [7, 8, 9]),
    (pc.field("d") > 1.0, [0, 3, 6, 9]),
    (pc.field("id") == 77, []),
]


@pytest.mark.parametrize("columns", [["id"], ["id", "v", "d", "u", "at", "st"], ["v", "id"], None])
@pytest.mark.parametrize(("expression", "ids"), EXPRESSIONS)
def test_arrow_only_expressions_are_applied_to_rows(
    table: TableBuilder, expression: pc.Expression, ids: list[int], columns: list[str] | None
) -> None:
    """Regardless of the columns that the query selects, whether the filter reads them or not."""
    dataset = table.scan().to_dataset()
    for filtered, more in ((dataset, {"filter": expression}), (dataset.filter(expression), {})):
        found = filtered.to_table(columns=columns, **more)
        assert sorted(found["id"].to_pylist()) == ids
        assert found.schema.names == (columns or dataset.schema.names)
        assert filtered.count_rows(**more) == len(ids)
        assert filtered.to_table(columns=["v"], **more).num_rows == len(ids)
        assert filtered.to_table(columns={"twice": pc.field("id") * 2}, **more).num_rows == len(ids)
    both = dataset.filter(expression).filter(pc.field("id") + 0 < 6)
    assert sorted(both.to_table()["id"].to_pylist()) == [number for number in ids if number < 6]


@pytest.mark.parametrize("batch_size", [1, 2, 4, 100])
def test_sized_batches_contain_every_row_once(table: TableBuilder, batch_size: int) -> None:
    batches = list(table.scan().to_dataset().to_batches(batch_size=batch_size))
    assert sorted(number for batch in batches for number in batch["id"].to_pylist()) == ALIVE
    assert max(batch.num_rows for batch in batches) <= batch_size


def test_filter_by_column_index_is_rejected(table: TableBuilder) -> None:
    with pytest.raises(InvalidPredicateError):
        table.scan(pc.field(0) > 6)


def test_projected_struct_keeps_only_selected_fields(table: TableBuilder) -> None:
    dataset = table.scan(columns=["id", "st.y"]).to_dataset()
    assert dataset.schema.field("st").type == pa.struct([("y", pa.int64())])
    found = dataset.to_table(columns=["st"], filter=pc.field("id") == 5)
    assert found.to_pydict() == {"st": [{"y": -5}]}


def test_pandas_reads_the_dataset(table: TableBuilder) -> None:
    frame = table.scan().to_dataset().to_table(columns=["id"]).to_pandas()
    assert sorted(frame["id"]) == ALIVE


def test_unsupported_dataset_methods_name_an_alternative(table: TableBuilder) -> None:
    dataset = table.scan().to_dataset()
    with pytest.raises(UnsupportedFeatureError, match="deletes apply to them"):
        dataset.get_fragments()
    with pytest.raises(UnsupportedFeatureError, match="join"):
        dataset.join(dataset, "id")
    with pytest.raises(UnsupportedFeatureError, match="schema"):
        dataset.replace_schema(dataset.schema)
    with pytest.raises(UnknownColumnError):
        dataset.to_table(columns=["idd"])


def test_dataset_can_be_pickled(table: TableBuilder) -> None:
    copy = pickle.loads(pickle.dumps(table.scan("id > 5").to_dataset()))
    assert sorted(copy.to_table()["id"].to_pylist()) == [6, 7, 8, 9]


@pytest.mark.parametrize(
    ("columns", "names", "found"),
    [
        (None, ["st", "id"], ["st", "id"]),
        (["id", "st"], ["st"], ["st"]),
        (["id", "st"], ["st", "id"], ["st", "id"]),
        (["st.y", "id", "st.x"], ["id", "st"], ["id", "st.y", "st.x"]),
        (["id", "v"], [], []),
        (["v", "id"], ["v"], ["v"]),
    ],
)
def test_columns_of_subset_of_selected_columns(
    table: TableBuilder, columns: list[str] | None, names: list[str], found: list[str]
) -> None:
    scan = table.scan(columns=columns)
    assert scan.columns_of(names) == found
    assert scan.select(found).schema.names == names


def test_column_with_dot_in_name_is_not_a_struct_field(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "a", LongType(), required=True),
        NestedField(2, "a.b", StringType(), required=False),
    )
    builder = TableBuilder(tmp_path, schema, key=["a"])
    builder.append([{"a": 1, "a.b": "x"}])
    scan = builder.scan(columns=["a", "a.b"])
    assert (scan.columns_of(["a"]), scan.columns_of(["a.b"])) == (["a"], ["a.b"])
    assert scan.to_dataset().to_table(columns=["a"]).to_pylist() == [{"a": 1}]


@pytest.mark.parametrize("limit", [True, 1.5, -1, "3"])
def test_invalid_limit_is_rejected(table: TableBuilder, limit: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="limit must be a whole number of rows"):
        table.scan(limit=limit)


def test_limits_apply_in_duckdb_connections(table: TableBuilder) -> None:
    for limit, count in ((0, 0), (4, 4), (99, 9), (None, 9)):
        with duckdb.connect() as connection:
            relation = table.scan(limit=limit).to_duckdb(connection, name="lake")
            assert relation.aggregate("count(*)").fetchall() == [(count,)]
            assert connection.sql("SELECT count(*) FROM lake").fetchall() == [(count,)]
    with pytest.raises(duckdb.CatalogException):
        duckdb.default_connection().sql("SELECT * FROM lake")
    assert table.scan().to_duckdb().aggregate("count(*)").fetchall() == [(9,)]
