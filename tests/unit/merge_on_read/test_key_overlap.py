"""Comparing bounds of delete files with many data files at once gives the same result as one data file at a time
(DA-4)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bounded_files import bounded_files
from pyiceberg.types import LongType

from tableformat.merge_on_read.key_overlap import KeyOverlap
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.columns.data_columns import columns_of_files
from tableformat.metadata.content_file import DataFile


def test_touching_bounds_overlap() -> None:
    """DA-4: bounds are of values that are there."""

    def of(lower: int | None, upper: int | None) -> DataFile:
        (data,) = bounded_files([], Random(1), 1)
        bounds = ({} if value is None else {1: to_bound(value, LongType())} for value in (lower, upper))
        return replace(data, lower_bounds=next(bounds), upper_bounds=next(bounds), null_value_counts={1: 0})

    overlap = KeyOverlap([of(0, 1), of(2, 3), of(3, 4), of(5, 6), of(None, 2), of(5, None)], [(1, LongType())])
    data = [of(2, 3), of(4, 4), of(-2, -1), of(7, 9), of(-9, 9)]
    expected = [
        [False, True, True, False, True, False],
        [False, False, True, False, False, False],
        [False, False, False, False, True, False],
        [False, False, False, False, False, True],
        [True] * 6,
    ]
    assert [overlap.candidates(each).tolist() for each in data] == expected
    assert overlap.candidates_of_all(columns_of_files(data)).tolist() == expected
