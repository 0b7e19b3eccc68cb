"""Keys with nanoseconds: Python's datetime, PyIceberg's literals and DuckDB before 2.0 only have microseconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import (
    DuplicateKeyError,
    InvalidKeyError,
    RowsRefusedError,
    UnsupportedFeatureError,
)

KINDS = {"without a zone": pa.timestamp("ns"), "with a zone": pa.timestamp("ns", "UTC")}
Rows = Callable[..., pa.Table]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> pa.DataType:
    return KINDS[request.param]


@pytest.fixture
def rows(kind: pa.DataType) -> Rows:
    def made(*nanoseconds: int, value: int = 1) -> pa.Table:
        keys = pa.array(nanoseconds, pa.int64()).cast(kind)
        return pa.table({"at": keys, "value": [value] * len(nanoseconds), "seen": keys})

    return made


@pytest.fixture
def table(tmp_path: Path, kind: pa.DataType, rows: Rows) -> tf.Table:
    """A table with 1,001 and 5,999 nanoseconds, each in a separate file with these bounds."""
    catalog = new_lake(tmp_path / "lake")
    schema = pa.schema([pa.field("at", kind, nullable=False), ("value", pa.int64()), ("seen", kind)])
    table = catalog.create_table("db.t", schema, key=["at"], properties={"format-version": "3"})
    table.append(rows(1_001))
    table.append(rows(5_999))
    return table


def test_nanosecond_keys_are_found(table: tf.Table, rows: Rows, kind: pa.DataType) -> None:
    found = table.get((pd.Timestamp(1_001, tz=kind.tz),))
    assert found is not None
    assert found["value"] == 1
    assert table.get((pd.Timestamp(1_002, tz=kind.tz),)) is None
    many = rows(*range(900), 1_001, 5_999).select(["at"])
    assert table.get_many(many).num_rows == 2


def test_existing_nanosecond_key_is_not_added_again(table: tf.Table, rows: Rows) -> None:
    """The files were chosen by bounds without the last three digits, and the stored key was above them."""
    with pytest.raises(DuplicateKeyError):
        table.append(rows(5_999), on_duplicate="error")
    result = table.append(rows(1_001, 1_002, 5_999), on_duplicate="ignore")
    assert result.added_row_count == 1, "1,002 is another key, though DuckDB before 2.0 has one microsecond for both"
    assert table.scan().count() == 3


def test_partial_upsert_keeps_values_for_nanosecond_keys(table: tf.Table, rows: Rows) -> None:
    table.upsert(rows(5_999).select(["at"]), missing="keep")
    assert table.scan().to_arrow()["value"].to_pylist() == [1, 1]


def test_nanoseconds_in_expressions_are_exact_or_rejected(table: tf.Table, rows: Rows, kind: pa.DataType) -> None:
    """DuckDB before 2.0 computes with microseconds if there is a zone."""
    is_exact = kind.tz is None or int(duckdb.__version__.split(".")[0]) >= 2
    source = rows(1_002, value=9)
    on = "target.at = source.at"
    if not is_exact:
        with pytest.raises(UnsupportedFeatureError, match=r"DuckDB 2\.0"):
            table.update("value = 1", set={"seen": '"at"'})
        with pytest.raises(UnsupportedFeatureError, match=r"DuckDB 2\.0"):
            table.merge(source, on=on).when_matched_delete().execute()
        assert table.update("value = 1", set={"value": "value + 1"}).added_row_count == 2, "they are not named"
        return
    table.merge(source, on=on).when_matched_delete().when_not_matched_insert_all().execute()
    table.update("value = 1", set={"seen": '"at"', "value": "2"})
    seen = table.scan(columns=["at", "seen"]).to_arrow()
    assert sorted(seen["at"].cast(pa.int64()).to_pylist()) == [1_001, 1_002, 5_999]
    assert seen["at"].equals(seen["seen"])


def test_nanosecond_values_beyond_column_precision_are_rejected(tmp_path: Path) -> None:
    """They used to be rounded down to the microsecond."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([pa.field("at", pa.timestamp("us"), nullable=False)]), key=["at"])
    table.append([{"at": pd.Timestamp(7_000)}])
    with pytest.raises(RowsRefusedError):
        table.append([{"at": pd.Timestamp(7_777)}])
    with pytest.raises(InvalidKeyError):
        table.delete_prefix({"at": pd.Timestamp(7_777)})
    with pytest.raises(InvalidKeyError):
        table.get((pd.Timestamp(7_777),))
