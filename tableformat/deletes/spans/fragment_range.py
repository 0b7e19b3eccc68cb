"""The part of a skyline that is newer than a data file, without a copy for each file.

    fragments     |--5--|--3--|      |----7----|
    file, seq 4     [.............................]      as spans   |--5--|            |----7----|
                                                         as a range 0 to 3, newer than 4

A file's own spans are matched quickly. However, if small files and scattered deletes were added alternately, their
number is the product of files and deletes. A range consists of three numbers, and all files of a plan share the
skyline.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from tableformat.cached_property import cached_property
from tableformat.deletes.positions import expanded
from tableformat.deletes.rules import range_delete_is_new_enough
from tableformat.deletes.spans.extremes import extremes
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.byte_search import SortedStrings

Indices: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Skyline:
    """RD-9: sorted, disjoint, numbered fragments, prepared for queries about ranges of them."""

    fragments: SpanArray

    @cached_property
    def numbers(self) -> Indices:
        numbers = self.fragments.sequence_numbers
        assert numbers is not None, "a skyline has sequence numbers"
        return numbers

    @cached_property
    def gap_count(self) -> Indices:
        """For each fragment, the number of gaps in the key space between fragment 0 and it."""
        lower, upper = self.fragments.lower.encoded, self.fragments.upper.encoded
        gaps = np.zeros(len(self.fragments), np.int64)
        gaps[1:] = np.asarray(pc.not_equal(upper[:-1], lower[1:]))
        return np.cumsum(gaps)

    @cached_property
    def begins(self) -> SortedStrings:
        """The cuts where the fragments begin, for lookups of keys."""
        return SortedStrings.of(self.fragments.lower.encoded)

    @cached_property
    def depth(self) -> int:
        """The number of leading columns that some cut binds."""
        return int(max(self.fragments.lower.depth.max(), self.fragments.upper.depth.max()))

    @cached_property
    def digest(self) -> bytes:
        """A short hash, equal for skylines with the same fragments and numbers."""
        return self.digest_of(0, len(self.fragments))

    def digest_of(self, begin: int, end: int) -> bytes:
        """The same hash for some of the fragments, independent of their position in the skyline."""
        fragments = self.fragments.slice(begin, end)
        parts = (fragments.lower.digest, fragments.upper.digest, self.numbers[begin:end].tobytes())
        return hashlib.blake2b(b"".join(parts), digest_size=20).digest()

    def gaps_inside(self, first: Indices, last: Indices) -> Indices:
        """The number of adjacent fragments in each range that do not touch; arbitrary for an empty range."""
        begin = np.minimum(first, len(self.numbers) - 1)
        return self.gap_count[last - 1] - self.gap_count[begin]

    def extreme(self, better: np.ufunc, first: Indices, last: Indices) -> Indices:
        """The largest (np.maximum) or smallest number in each range of fragments; arbitrary for an empty range."""
        return extremes(better, self.numbers, first, last)

    def joined_spans(self, begins: Indices, ends: Indices, numbers: Indices) -> list[SpanArray]:
        """RD-2: for each range, the fragments that are newer than its number, with touching ones joined. Each range
        must have at least one newer fragment."""
        lengths = ends - begins
        range_of = np.repeat(np.arange(len(begins)), lengths)
        newer = expanded(begins, ends)
        is_newer = range_delete_is_new_enough(self.numbers[newer], numbers[range_of])
        newer, range_of = newer[is_newer], range_of[is_newer]
        breaks = (np.diff(newer) != 1) | (np.diff(self.gap_count[newer]) > 0) | (np.diff(range_of) > 0)
        starts = np.concatenate([[0], np.flatnonzero(breaks) + 1])
        stops = np.append(starts[1:], len(newer)) - 1
        oldest = np.minimum.reduceat(self.numbers[newer], starts)
        lower, upper = self.fragments.lower, self.fragments.upper
        spans = SpanArray(self.fragments.key, lower.take(newer[starts]), upper.take(newer[stops]), oldest)
        bounds = np.searchsorted(range_of[starts], np.arange(len(begins) + 1)).tolist()
        return [spans.slice(start, stop) for start, stop in pairwise(bounds)]


@dataclass(frozen=True, eq=False)
class FragmentRange:
    """RD-2: the fragments from `begin` to `end` that are newer than `newer_than`. There is at least one. It is pickled
    as the spans that it stands for."""

    skyline: Skyline
    begin: int
    end: int
    newer_than: int

    def __len__(self) -> int:
        """The number of fragments in the range, including older ones."""
        return self.end - self.begin

    def __reduce__(self) -> tuple[Callable[..., SpanArray], tuple[Any, ...]]:
        return _unpickled, (self.spans(),)

    def spans(self) -> SpanArray:
        """The spans: sorted, disjoint, and newer than the file."""
        begin, end, number = (np.array([each]) for each in (self.begin, self.end, self.newer_than))
        return self.skyline.joined_spans(begin, end, number)[0]


RangeDeletes: TypeAlias = SpanArray | FragmentRange
"""The deletes of one scope and list of columns that are newer than a data file."""


def spans_of(deletes: RangeDeletes) -> SpanArray:
    """The deletes as spans, sorted and disjoint."""
    return deletes.spans() if isinstance(deletes, FragmentRange) else deletes


def _unpickled(spans: SpanArray) -> SpanArray:
    return spans
