"""Bounds of delete files against those of many data files at once hold to each data file by itself (DA-4)."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
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

from tableformat.merge_on_read.key_overlap import KeyOverlap, have_odd_bounds
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.columns.data_columns import columns_of_files
from tableformat.metadata.content_file import PARQUET, DataFile

FAR = (1 << 31) - 1
"""A date, the last of 32 bits, whose timestamp in microseconds is none of 64 bits."""
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


def files(kinds: list[PrimitiveType], random: Random, count: int) -> list[DataFile]:
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


@pytest.mark.parametrize(
    "kinds", [[kind] for kind in BOUNDS] + [[LongType(), StringType()]], ids=lambda kinds: " ".join(map(str, kinds))
)
def test_many_files_are_compared_as_one_by_one(kinds: list[PrimitiveType]) -> None:
    random = Random(8)
    columns = list(enumerate(kinds, 1))
    data, deletes = files(kinds, random, 150), files(kinds, random, 150)
    overlap = KeyOverlap(deletes, columns)
    chosen = columns_of_files(data)
    is_odd = have_odd_bounds(chosen, columns)
    together = overlap.candidates_of_all(chosen)
    one_by_one = np.array([overlap.candidates(each) for each in data])
    assert (together[~is_odd] == one_by_one[~is_odd]).all()
    assert (together >= one_by_one).all()
    assert not one_by_one[~is_odd].all()
    assert one_by_one[~is_odd].any()


def test_delete_files_without_bounds_reach_all_files_but_those_without_values() -> None:
    random = Random(3)
    (delete,) = files([], random, 1)
    data = files([LongType()], random, 20)
    overlap = KeyOverlap([delete], [(1, LongType())])
    expected = [overlap.candidates(each).tolist() for each in data]
    assert overlap.candidates_of_all(columns_of_files(data)).tolist() == expected
