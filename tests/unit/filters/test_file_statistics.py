"""Facts about columns that metadata proves, and facts that it only seems to prove."""

from __future__ import annotations

import math
import struct
import uuid
from typing import Any

import pytest
from pyiceberg.types import DoubleType, LongType, UUIDType

from tableformat.errors import CorruptFileError
from tableformat.filters.file_statistics import column_statistics, summary_statistics
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_entry import PartitionFieldSummary


def data(**metrics: Any) -> DataFile:
    return DataFile(
        file_path="data.parquet", file_format="PARQUET", spec_id=0, record_count=10, file_size_bytes=1, **metrics
    )


def test_nan_in_a_bound_makes_it_unknown() -> None:
    """Old writers put NaN there."""
    nan = struct.pack("<d", math.nan)
    facts = column_statistics(
        data(lower_bounds={1: nan}, upper_bounds={1: nan}, null_value_counts={1: 0}), 1, DoubleType()
    )
    assert (facts.lower, facts.upper, facts.may_be_nan, facts.may_have_values) == (None, None, True, True)


@pytest.mark.parametrize(
    ("lower", "upper", "expected_lower", "expected_upper"),
    [
        ("10", "90", bytes([0x10]) + bytes(7) + bytes(8), bytes([0x90]) + bytes(7) + b"\xff" * 8),
        ("90", "f0", None, bytes([0xF0]) + bytes(7) + b"\xff" * 8),
        ("10", "7f", bytes([0x10]) + bytes(7) + bytes(8), None),
        ("90", "10", None, None),
    ],
)
def test_uuid_bounds_are_used_only_if_signed_and_unsigned_order_agree(
    lower: str, upper: str, expected_lower: bytes | None, expected_upper: bytes | None
) -> None:
    """Merging the unsigned minima 10.. and 90.. of two row groups in signed order results in 90.., above some rows."""
    bounds = [uuid.UUID(hex=first + "0" * 30).bytes for first in (lower, upper)]
    facts = column_statistics(data(lower_bounds={1: bounds[0]}, upper_bounds={1: bounds[1]}), 1, UUIDType())
    assert (facts.lower, facts.upper) == (expected_lower, expected_upper)


def test_invalid_bounds_error_names_the_file() -> None:
    with pytest.raises(CorruptFileError, match=r"data\.parquet"):
        column_statistics(data(lower_bounds={1: b"abc"}), 1, LongType())


def test_summary_without_bounds_means_no_values() -> None:
    facts = summary_statistics(PartitionFieldSummary(True, False, None, None), LongType(), "m.avro")
    assert (facts.may_be_null, facts.may_have_values, facts.may_be_nan) == (True, False, False)
