"""The checks of verification on rows, over the batches that a large file is read in (MT-74)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import DoubleType, LongType, PrimitiveType, StringType, TimestampType

from tableformat.keys.rising_rows import first_fall
from tableformat.maintenance.verification.row_checks import ColumnCheck, OrderCheck
from tableformat.metadata.content_file import DataFile

NAN = math.nan
DOUBLE = pa.float64()
MICROS = pa.timestamp("us")


def entry(field_type: PrimitiveType, **stated: Any) -> DataFile:
    """A file with this field 1: `values`, `nulls` and `nans` are counts, `lower` and `upper` are bounds."""
    return DataFile(
        file_path="f.parquet",
        file_format="PARQUET",
        spec_id=0,
        partition=(),
        record_count=0,
        file_size_bytes=1,
        sequence_number=1,
        value_counts={1: stated["values"]} if "values" in stated else None,
        null_value_counts={1: stated["nulls"]} if "nulls" in stated else None,
        nan_value_counts={1: stated["nans"]} if "nans" in stated else None,
        lower_bounds={1: to_bytes(field_type, stated["lower"])} if "lower" in stated else None,
        upper_bounds={1: to_bytes(field_type, stated["upper"])} if "upper" in stated else None,
    )


def batches_of(parts: Sequence[Sequence[Any]], arrow_type: pa.DataType) -> list[pa.RecordBatch]:
    return [pa.record_batch({"x": pa.array(part, arrow_type)}) for part in parts]


def column_flaws(
    parts: Sequence[Sequence[Any]], field_type: PrimitiveType, arrow_type: pa.DataType, **stated: Any
) -> list[str]:
    """The texts of the flaws that the check finds in the column."""
    check = ColumnCheck(entry(field_type, **stated), 1, "x", field_type, ["x"])
    for batch in batches_of(parts, arrow_type):
        check.add(batch)
    return [flaw.what for flaw in check.flaws()]


def test_counts_and_bounds_are_of_all_batches_together() -> None:
    parts = [[2.0, None], [], [NAN, 9.0], [None, NAN, None], [5.0]]
    right = {"values": 8, "nulls": 3, "nans": 2, "lower": 2.0, "upper": 9.0}
    assert column_flaws(parts, DoubleType(), DOUBLE, **right) == []
    for name, other, told in (
        ("values", 9, "9 values in column 'x', but the file has 8"),
        ("nulls", 2, "2 nulls in column 'x', but the file has 3"),
        ("nans", 1, "1 NaNs in column 'x', but the file has 2"),
        ("lower", 3.0, "2.0, below the lower bound 3.0"),
        ("upper", 8.0, "9.0, above the upper bound 8.0"),
    ):
        (what,) = column_flaws(parts, DoubleType(), DOUBLE, **{**right, name: other})
        assert told in what


@pytest.mark.parametrize("parts", [[[1], [5]], [[5], [1]], [[5, 1]], [[5, None], [None], [1]]])
def test_one_bound_is_held_against_the_values_without_the_other(parts: list[list[int | None]]) -> None:
    for stated, told in (
        ({"lower": 2}, "1, below"),
        ({"upper": 4}, "5, above"),
        ({"lower": 2, "upper": 4}, "1, below"),
    ):
        found = column_flaws(parts, LongType(), pa.int64(), **stated)
        assert told in found[0], found
        assert len(found) == len(stated)
    assert column_flaws(parts, LongType(), pa.int64(), lower=1) == []
    assert column_flaws(parts, LongType(), pa.int64(), upper=5) == []
    assert column_flaws(parts, LongType(), pa.int64()) == []


def test_a_column_of_nulls_is_within_any_bounds() -> None:
    assert column_flaws([[None], [None]], LongType(), pa.int64(), lower=1, upper=2, nulls=2) == []
    assert column_flaws([[NAN], [None, NAN]], DoubleType(), DOUBLE, lower=1.0, upper=2.0) == []
    assert column_flaws([[]], StringType(), pa.string(), lower="a", upper="b", values=0) == []


def test_values_finer_than_the_type_of_the_column_are_cut_as_readers_cut_them() -> None:
    """Other writers store nanoseconds in columns of microseconds."""
    parts = [[1_000_999, 5_000_001]]
    bounds = {"lower": 1_000, "upper": 5_000}
    assert column_flaws(parts, TimestampType(), pa.timestamp("ns"), **bounds) == []
    assert column_flaws([[1_000, 5_000]], TimestampType(), MICROS, **bounds) == []
    assert column_flaws([[999, 5_000]], TimestampType(), MICROS, **bounds) != []


@pytest.mark.parametrize(
    ("parts", "falls_at"),
    [
        ([[1, 2], [2, 3]], None),
        ([[1, 2], [], [3]], None),
        ([[], [1]], None),
        ([[None, None], [None, 1]], None),
        ([[1, 3], [2]], 2),
        ([[1], [2, 5, 4], [0]], 3),
        ([[3, 1], [0], [9, 8]], 1),
        ([[1, 2], [], [1]], 2),
        ([[1], [None]], 1),
    ],
)
def test_the_first_row_out_of_order_is_told_by_its_position(
    parts: list[list[int | None]], falls_at: int | None
) -> None:
    """RD-11: between batches and within them, null below every value."""
    check = OrderCheck(entry(LongType()), [["x"]], ["x"])
    for batch in batches_of(parts, pa.int64()):
        check.add(batch)
    told = [flaw.what for flaw in check.flaws()]
    assert len(told) == (falls_at is not None)
    assert all(f"the row at position {falls_at} " in what for what in told)


@pytest.mark.parametrize(
    ("columns", "falls_at"),
    [
        (([1, 1, 2], [1, 2, 0]), None),
        (([1, 1, 2], [2, 1, 0]), 1),
        (([None, None, 1], [1, 0, 0]), 1),
        (([None, None, 1], [None, 0, 0]), None),
        (([1, 1], [0, None]), 1),
        (([2, None], [0, 1]), 1),
        (([1, 2, 1], [0, 0, 0]), 2),
        (([1], [1]), None),
        (([], []), None),
    ],
)
def test_columns_are_compared_one_after_the_other(columns: tuple[list[Any], list[Any]], falls_at: int | None) -> None:
    """RD-4"""
    assert first_fall([pa.array(column, pa.int64()) for column in columns]) == falls_at
