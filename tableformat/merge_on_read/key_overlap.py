"""Finds files that may hold a key of another file, by the bounds of some columns.

A table that is written by upserts has thousands of delete files and thousands of data files. The bounds of one kind
become ranks once, and a file of the other kind is compared with all of them by a few array operations for each column.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pyiceberg.types import IcebergType

from tableformat.filters.bound_columns import comparable_literal, literal_array
from tableformat.filters.column_pruning import StatisticsColumns, literals_before, statistics_columns
from tableformat.filters.file_statistics import column_statistics
from tableformat.metadata.columns.data_columns import DataColumns
from tableformat.metadata.content_file import ContentFile

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _ColumnRanks:
    """The bounds of one delete column in many files, as ranks among the distinct bounds."""

    field_id: int
    column_type: IcebergType
    distinct: list[Any]
    lower: npt.NDArray[np.int64]
    """-1 if unknown."""
    upper: npt.NDArray[np.int64]
    """Greater than every rank if unknown."""
    may_have_values: Mask
    may_be_null: Mask
    may_be_nan: Mask

    @staticmethod
    def of(field_id: int, column_type: IcebergType, files: Sequence[ContentFile]) -> _ColumnRanks:
        statistics = [column_statistics(file, field_id, column_type) for file in files]
        bounds = {bound for each in statistics for bound in (each.lower, each.upper) if bound is not None}
        distinct = sorted(bounds)
        ranks = {bound: rank for rank, bound in enumerate(distinct)}
        return _ColumnRanks(
            field_id,
            column_type,
            distinct,
            np.array([-1 if each.lower is None else ranks[each.lower] for each in statistics], np.int64),
            np.array([len(distinct) if each.upper is None else ranks[each.upper] for each in statistics], np.int64),
            np.array([each.may_have_values for each in statistics], np.bool_),
            np.array([each.may_be_null for each in statistics], np.bool_),
            np.array([each.may_be_nan for each in statistics], np.bool_),
        )

    def may_share_value(self, other: ContentFile) -> Mask:
        """DA-4: whether a value, null or NaN of the column may be in both files."""
        statistics = column_statistics(other, self.field_id, self.column_type)
        shared = np.zeros(len(self.lower), np.bool_)
        if statistics.may_have_values:
            # Ranks from `first` on are not less than the lower bound; ranks before `after_last` are not greater than
            # the upper bound.
            first = -1 if statistics.lower is None else bisect_left(self.distinct, statistics.lower)
            after_last = (
                len(self.distinct) if statistics.upper is None else bisect_right(self.distinct, statistics.upper)
            )
            shared |= self.may_have_values & (self.upper >= first) & (self.lower < after_last)
        if statistics.may_be_null:
            shared |= self.may_be_null
        if statistics.may_be_nan:
            shared |= self.may_be_nan
        return shared

    def may_share_value_of_all(self, files: StatisticsColumns) -> Mask:
        """`may_share_value` for many files, one row each. Files with an invalid bound are included."""
        smaller, literals = self._literals()
        below_lower = smaller + literals_before(literals, files.lower, right=False, unknown=-smaller)
        up_to_upper = smaller + literals_before(literals, files.upper, right=True, unknown=len(self.distinct) - smaller)
        shared: Mask = (below_lower[:, None] <= self.upper) & (up_to_upper[:, None] > self.lower)
        shared &= files.may_have_values[:, None] & self.may_have_values
        shared |= files.is_odd[:, None]
        shared |= files.may_be_null[:, None] & self.may_be_null
        shared |= files.may_be_nan[:, None] & self.may_be_nan
        return shared

    def _literals(self) -> tuple[int, Any]:
        """The distinct bounds in array form, without those outside the range of the column's values, and the number of
        bounds below that range."""
        smaller, literals = 0, []
        for bound in self.distinct:
            try:
                literal = comparable_literal(bound, self.column_type)
                if isinstance(literal, int):
                    np.int64(literal)
            except OverflowError:
                smaller += bound < 0
            else:
                literals.append(literal)
        return smaller, literal_array(literals, self.column_type)


def have_odd_bounds(files: DataColumns, columns: Sequence[tuple[int, IcebergType]]) -> Mask:
    """Data files for which `KeyOverlap.candidates_of_all` is less precise than `candidates`."""
    found = np.zeros(len(files), np.bool_)
    for field_id, column_type in columns:
        statistics = statistics_columns(files, field_id, column_type)
        found |= True if statistics is None else statistics.is_odd
    return found


class KeyOverlap:
    """The bounds of the delete columns in delete files with one set of delete columns, or in data files."""

    def __init__(self, files: Sequence[ContentFile], columns: Sequence[tuple[int, IcebergType]]) -> None:
        """`columns` are field ids and types of the delete columns with known types. Other columns exclude nothing."""
        self._columns = [_ColumnRanks.of(field_id, column_type, files) for field_id, column_type in columns]
        self._count = len(files)

    def candidates(self, other: ContentFile) -> Mask:
        """For each file whether it may hold a key of the other file. A key has to match in every column."""
        matches = np.ones(self._count, np.bool_)
        for column in self._columns:
            matches &= column.may_share_value(other)
        return matches

    def candidates_of_all(self, files: DataColumns) -> Mask:
        """`candidates` for many data files, one row each. Files with a bound that is not a value of its type are
        included."""
        matches = np.ones((len(files), self._count), np.bool_)
        for column in self._columns:
            statistics = statistics_columns(files, column.field_id, column.column_type)
            if statistics is not None:
                matches &= column.may_share_value_of_all(statistics)
        return matches
