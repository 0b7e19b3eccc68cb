"""Key bounds of many files in columns, compared with the bounds of one file at a time."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any, Final

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    UUIDType,
)

from tableformat.deletes.spans.bounds import key_bounds
from tableformat.deletes.spans.key_bound_columns import key_bound_columns
from tableformat.errors import CorruptFileError
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.columns.data_columns import columns_of_files
from tableformat.metadata.content_file import DataFile

VALUES: Final[dict[PrimitiveType, list[Any]]] = {
    BooleanType(): [False, True],
    LongType(): [-(1 << 63), -1, 0, 7, (1 << 63) - 1],
    DoubleType(): [float("-inf"), -1.5, -0.0, 0.0, 2.5, float("inf")],
    StringType(): ["", "a", "a\0", "é", "zz"],
    BinaryType(): [b"", b"\0", b"\0\xff", b"\xff\xff"],
    FixedType(3): [bytes(3), b"abc", b"\xff" * 3],
    UUIDType(): [bytes(16), b"\x80" + bytes(15), b"\xff" * 16],
    DecimalType(9, 2): [Decimal("-12.34"), Decimal("0.00"), Decimal("9999999.99")],
    DecimalType(38, 0): [Decimal(-(10**37)), Decimal(0), Decimal(10**38 - 1)],
    DateType(): [-719_162, 0, 2_932_896],
    # Dates from before the column was promoted among them; the first and the last lie beyond all timestamps.
    TimestampType(): [
        struct.pack(*each) for each in (("<i", -(1 << 31)), ("<q", -5), ("<i", 40), ("<i", (1 << 31) - 1))
    ],
}


def file_of(metrics: dict[str, dict[int, Any]]) -> DataFile:
    fixed: dict[str, Any] = {"file_path": "f", "file_format": "PARQUET", "spec_id": 0, "sequence_number": 1}
    return DataFile(record_count=3, file_size_bytes=100, **fixed, **metrics)


@pytest.mark.parametrize("key_type", [LongType(), FixedType(3), DoubleType()])
def test_invalid_bound_bytes_raise_error_only_if_needed(key_type: PrimitiveType) -> None:
    """RD-10: if a file has a null, its lower bound is null, regardless of the stored bound. If all values are null, the
    upper bound is null too."""
    key = KeyColumns((1,), ("k",), (key_type,))
    wrong, right = b"\x01\x02\x03\x04\x05", to_bytes(key_type, VALUES[key_type][0])
    for nulls, lower, upper in [
        (0, wrong, right),
        (0, right, wrong),
        (1, wrong, right),
        (1, right, wrong),
        (3, wrong, wrong),
    ]:
        counts = {"null_value_counts": {1: nulls}, "value_counts": {1: 3}, "nan_value_counts": {1: 0}}
        file = file_of({**counts, "lower_bounds": {1: lower}, "upper_bounds": {1: upper}})
        is_needed = (lower == wrong and not nulls) or (upper == wrong and nulls != 3)
        if is_needed:
            with pytest.raises(CorruptFileError, match="bound of field id 1"):
                key_bound_columns(columns_of_files([file]), key)
            with pytest.raises(CorruptFileError, match="bound of field id 1"):
                key_bounds(file, key)
        else:
            found = key_bound_columns(columns_of_files([file]), key)
            assert (found.lower[0].as_py(), found.upper[0].as_py()) == (
                key_bounds(file, key).lower,
                key_bounds(file, key).upper,
            )
