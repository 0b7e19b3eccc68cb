"""Data files in memory with random column bounds: values, missing bounds, and bytes that are not a value."""

from __future__ import annotations

from random import Random
from typing import Any

from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
)

from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import PARQUET, DataFile

FAR = 7 << 28
"""A date whose timestamp in microseconds does not fit into 64 bits; truncated to 64 bits it has the opposite sign."""
WIDE = (1 << 127) + 1
"""A number of 17 bytes."""
BOUNDS: dict[PrimitiveType, list[bytes]] = {
    LongType(): [to_bound(value, LongType()) for value in range(5)] + [to_bound(-3, IntegerType())],
    StringType(): [value.encode() for value in ("", "a", "ab", "b", "\U0001f600", "\ufffd")],
    DoubleType(): [to_bound(value, DoubleType()) for value in (-1.5, -0.0, 0.0, 2.5, float("inf"), float("nan"))],
    DecimalType(38, 2): [
        number.to_bytes(17 if abs(number) >= WIDE else 2, "big", signed=True)
        for number in (-WIDE - 1, -WIDE, -1, 0, 300, WIDE)
    ],
    TimestampType(): [
        *(to_bound(days, DateType()) for days in (-FAR, 1 - FAR, -1, 0, 1, FAR)),
        *(to_bound(micros, TimestampType()) for micros in (-1, 1, (1 << 63) - 1)),
    ],
}


def bounded_files(kinds: list[PrimitiveType], random: Random, count: int) -> list[DataFile]:
    """Data files with columns of these types, whose ids count from 1."""

    def metric(values: list[list[Any]]) -> dict[int, Any]:
        drawn = {field_id: random.choice([None, *choices]) for field_id, choices in enumerate(values, 1)}
        return {field_id: value for field_id, value in drawn.items() if value is not None}

    counts = [[0, 1, 2]] * len(kinds)
    stored = [BOUNDS[kind] * 2 for kind in kinds]
    return [
        DataFile(
            file_path=f"file:/t/{number}",
            file_format=PARQUET,
            spec_id=0,
            partition=(),
            record_count=2,
            file_size_bytes=1,
            value_counts=metric(counts),
            null_value_counts=metric(counts),
            nan_value_counts=metric(counts),
            lower_bounds=metric(stored),
            upper_bounds=metric(stored),
            sequence_number=1,
        )
        for number in range(count)
    ]
