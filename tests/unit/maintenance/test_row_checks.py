"""The checks of verification on rows, over the batches that a large file is read in (MT-74)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import LongType, PrimitiveType, TimestampType

from tableformat.maintenance.verification.row_checks import ColumnCheck
from tableformat.metadata.content_file import DataFile

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


@pytest.mark.parametrize("parts", [[[1], [5]], [[5], [1]], [[5, 1]], [[5, None], [None], [1]]])
def test_single_bound_is_checked_against_values(parts: list[list[int | None]]) -> None:
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


def test_finer_values_are_truncated_like_in_readers() -> None:
    """Other writers store nanoseconds in columns of microseconds."""
    parts = [[1_000_999, 5_000_001]]
    bounds = {"lower": 1_000, "upper": 5_000}
    assert column_flaws(parts, TimestampType(), pa.timestamp("ns"), **bounds) == []
    assert column_flaws([[1_000, 5_000]], TimestampType(), MICROS, **bounds) == []
    assert column_flaws([[999, 5_000]], TimestampType(), MICROS, **bounds) != []
