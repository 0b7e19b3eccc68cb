"""Columns as Arrow and other libraries describe them, converted to the Iceberg types that store them."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from new_lakes import new_lake

from tableformat.errors import InvalidArgumentError
from tableformat.metadata.arrow_schema import iceberg_schema

NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
STORED: list[tuple[pa.DataType, pa.DataType, Any]] = [
    (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC"), NOON),
    (pa.timestamp("ns", "Asia/Tokyo"), pa.timestamp("us", "UTC"), NOON),
    (pa.timestamp("ns"), pa.timestamp("us"), NOON.replace(tzinfo=None)),
    (pa.date64(), pa.date32(), NOON.date()),
    (pa.time32("s"), pa.time64("us"), NOON.time()),
    (pa.time64("ns"), pa.time64("us"), NOON.time()),
    (pa.decimal256(38, 2), pa.decimal128(38, 2), decimal.Decimal("1.50")),
    (pa.dictionary(pa.int8(), pa.string()), pa.string(), "a"),
    (pa.run_end_encoded(pa.int32(), pa.string()), pa.string(), "a"),
    (pa.list_view(pa.int32()), pa.list_(pa.field("element", pa.int32())), [1]),
    (pa.list_(pa.date64(), 1), pa.list_(pa.field("element", pa.date32())), [NOON.date()]),
    (
        pa.struct([("at", pa.timestamp("s", "Asia/Tokyo"))]),
        pa.struct([("at", pa.timestamp("us", "UTC"))]),
        {"at": NOON},
    ),
]


@pytest.mark.parametrize(("given", "stored", "value"), STORED, ids=lambda each: str(each)[:30])
def test_arrow_types_are_converted_to_storable_types(
    tmp_path: Path, given: pa.DataType, stored: pa.DataType, value: Any
) -> None:
    """Types that Iceberg lacks, but whose values fit into an Iceberg type."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("column", given)]))
    table.append(pa.table({"column": pa.array([value], given)}))
    found = table.scan().to_arrow()["column"]
    assert found.type == stored
    assert found.to_pylist() == [value]


def test_nanoseconds_are_kept_in_v3() -> None:
    columns = pa.schema([("at", pa.timestamp("ns", "Europe/Berlin"))])
    assert str(iceberg_schema(columns, format_version=3).find_type("at")) == "timestamptz_ns"
    assert str(iceberg_schema(columns, format_version=2).find_type("at")) == "timestamptz"


def test_polars_schema_is_accepted() -> None:
    assert iceberg_schema(pl.DataFrame({"a": [1], "b": ["x"]}).schema) == iceberg_schema(
        pa.schema([("a", pa.int64()), ("b", pa.string())])
    )


@pytest.mark.parametrize("rows", [pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]})])
def test_rows_instead_of_schema_are_rejected(tmp_path: Path, rows: Any) -> None:
    catalog = new_lake(tmp_path / "lake")
    with pytest.raises(InvalidArgumentError, match=r"not rows \(\w+\)\. Pass pa\.table\(rows\)\.schema, and append"):
        catalog.create_table("db.t", rows)
    assert not catalog.table_exists("db.t")
    catalog.create_table("db.t", pa.table(rows).schema).append(rows)


def test_unsupported_type_error_names_the_column() -> None:
    with pytest.raises(InvalidArgumentError, match=r"column 'took' has the Arrow type duration\[s\]"):
        iceberg_schema(pa.schema([("took", pa.duration("s"))]))
