from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from tableformat.errors import InvalidArgumentError
from tableformat.write.rows.rows import as_reader

TABLE = pa.table({"id": [1, 2], "name": ["a", None]})


@pytest.mark.parametrize(
    "rows",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        TABLE.to_batches(),
        iter(TABLE.to_batches()),
        (batch for batch in TABLE.to_batches()),
        ds.dataset(TABLE),
        TABLE.to_pylist(),
        TABLE.to_pandas(),
        pl.from_arrow(TABLE),
        pl.DataFrame(TABLE).lazy(),
        TABLE.to_batches()[0].to_struct_array(),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_all_arrow_data_sources_return_the_same_rows(rows: object) -> None:
    assert as_reader(rows).read_all().to_pylist() == TABLE.to_pylist()


def test_a_duckdb_relation_is_read() -> None:
    with duckdb.connect() as connection:
        assert as_reader(connection.sql("SELECT 1 AS id")).read_all().to_pylist() == [{"id": 1}]


def test_pandas_nan_is_null_and_index_is_not_a_column() -> None:
    frame = pd.DataFrame({"x": [1.0, float("nan")]}, index=["a", "b"])
    assert as_reader(frame).read_all().to_pylist() == [{"x": 1.0}, {"x": None}]


def test_pandas_values_use_the_table_type_if_arrow_infers_none() -> None:
    schema = pa.schema([("id", pa.int64()), ("wide", pa.decimal128(38, 0))])
    frame = pd.DataFrame({"id": [1, 2], "wide": [2**70, None]})
    assert as_reader(frame, schema=schema).read_all()["wide"].to_pylist() == [2**70, None]
    with pytest.raises(InvalidArgumentError, match="column 'id' of rows has values without a common type"):
        as_reader(pd.DataFrame({"id": [1, "a"]}), schema=schema)
    with pytest.raises(InvalidArgumentError, match="column 'id' of rows has an integer of more than 64 bits"):
        as_reader([{"id": 2**70}], schema=schema)
    with pytest.raises(InvalidArgumentError, match="two columns of the same name"):
        as_reader(pd.DataFrame([[1, 2]], columns=["id", "id"]), schema=schema)


@pytest.mark.parametrize("frame_of", [pa.table, pd.DataFrame, pl.DataFrame])
def test_portions_are_read_lazily(frame_of: Callable[[dict[str, list[int]]], Any]) -> None:
    taken = []

    def portions() -> Iterator[Any]:
        for number in range(3):
            taken.append(number)
            yield frame_of({"id": [number]})

    reader = as_reader(portions())
    assert taken == [0]
    assert reader.read_all()["id"].to_pylist() == [0, 1, 2]
    assert as_reader([frame_of({"id": [7]}), frame_of({"id": [8]})]).read_all()["id"].to_pylist() == [7, 8]


def test_portion_with_different_types_is_named_in_the_error() -> None:
    """In pandas, an integer column with a null is a float column."""
    portions = (pd.DataFrame({"id": ids}) for ids in ([1, 2], [3, None]))
    with pytest.raises(InvalidArgumentError, match=r"portion 1 of rows has the columns \(id double\)"):
        as_reader(portions).read_all()


def test_lazy_frame_is_computed_on_read() -> None:
    frame = pl.DataFrame(TABLE).lazy().with_columns(pl.col("id") * 2).filter(pl.col("id") > 2)
    assert as_reader(frame).read_all().to_pylist() == [{"id": 4, "name": None}]
    empty = as_reader(frame.filter(pl.col("id") > 9))
    assert (empty.schema.names, empty.read_all().num_rows) == (["id", "name"], 0)


def test_a_dict_is_one_row() -> None:
    assert as_reader({"id": 1, "name": None}).read_all().to_pylist() == [{"id": 1, "name": None}]
    nested = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    assert as_reader({"id": 1, "tags": ["a"]}, schema=nested).read_all().to_pylist() == [{"id": 1, "tags": ["a"]}]
    with pytest.raises(InvalidArgumentError, match=r"pa\.table"):
        as_reader({"id": [1], "tags": ["a"]}, schema=nested)


def test_dicts_keep_their_time_zone() -> None:
    schema = pa.schema([pa.field("ts", pa.timestamp("us"))])
    aware = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    assert as_reader([{"ts": aware}], schema=schema).schema.field("ts").type.tz is not None


@pytest.mark.parametrize("rows", [42, "text", b"bytes", {"a": [1]}, [1, 2], None, iter([1])])
def test_unsupported_rows_error_lists_accepted_types(rows: object) -> None:
    with pytest.raises(InvalidArgumentError, match="accepted are a pyarrow Table"):
        as_reader(rows)
