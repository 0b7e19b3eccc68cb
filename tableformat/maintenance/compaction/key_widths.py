"""Widths of files in the key space, and how many files a key lookup reads (MT-41).

The model comes from Apache Kudu. Reading a key costs as many files as cover it, so the cost of a table is the sum of
the widths of its files. Merging files saves the sum of their widths minus the width of their union.

    file a   |=======|                    The key space is cut at every bound of every file. The weight of an interval
    file b       |==========|             is the data in it, with each file spread evenly over the intervals that it
    file c             |====|             covers: dense parts of the key space are looked up more often than empty ones.
    cuts     |   |   | |    |
    height     1   2  1  2

The share of a file in an interval is estimated from the bytes of the cuts, read as numbers: keys are assumed to be
spread evenly between the bounds of a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from tableformat.deletes.spans.bounds import KeyBounds
from tableformat.keys.encoding import AFTER_MARKER

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class KeySpace:
    """Files of one partition over the intervals between their distinct bounds."""

    lengths: Weights
    """The distance between the two cuts of each interval. Only the proportions have a meaning."""
    first: npt.NDArray[np.int64]
    """For each file, the first interval that it covers."""
    end: npt.NDArray[np.int64]
    """For each file, the interval after its last; equal to `first` if all keys of the file are the same."""
    weights: Weights
    """The bytes of all files in each interval."""

    @staticmethod
    def of(bounds: Sequence[KeyBounds], sizes: Sequence[int]) -> KeySpace:
        """`sizes` are the files' bytes. Files whose bounds only touch do not overlap."""
        ranges = [_as_range(each) for each in bounds]
        distinct = sorted({cut for each in ranges for cut in each})
        ranks = {cut: rank for rank, cut in enumerate(distinct)}
        first = np.array([ranks[lower] for lower, _ in ranges], np.int64)
        end = np.array([ranks[upper] for _, upper in ranges], np.int64)
        space = KeySpace(_distances(distinct), first, end, np.zeros(max(len(distinct) - 1, 0)))
        for file, size in enumerate(sizes):
            space.weights[space.intervals(file)] += space.spread(file, size)
        return space

    def intervals(self, file: int) -> slice:
        """The intervals that the file covers."""
        return slice(int(self.first[file]), int(self.end[file]))

    def spread(self, file: int, size: int) -> Weights:
        """The bytes of a file over the intervals that it covers."""
        lengths = self.lengths[self.intervals(file)]
        total = lengths.sum()
        shares: Weights = lengths / total if total > 0 else np.full(len(lengths), 1 / max(len(lengths), 1))
        return shares * size

    def widths(self) -> Weights:
        """For each file, the bytes of all files in its intervals, including its own."""
        below = np.concatenate([[0.0], np.cumsum(self.weights)])
        widths: Weights = below[self.end] - below[self.first]
        return widths

    def union_width(self, files: Sequence[int]) -> float:
        """The width of the intervals that at least one of the files covers."""
        height = np.zeros(len(self.weights) + 1, np.int64)
        np.add.at(height, self.first[list(files)], 1)
        np.subtract.at(height, self.end[list(files)], 1)
        return float(self.weights[np.cumsum(height)[:-1] > 0].sum())

    def mean_height(self, files: Sequence[int]) -> float:
        """How many of the files contain a key in their range, on average; 1 if the files only touch."""
        union = self.union_width(files)
        return float(self.widths()[list(files)].sum() / union) if union > 0 else 1.0

    def overlapping(self, files: Sequence[int]) -> list[list[int]]:
        """The files in sets that have no key in common, each set in key order."""
        groups: list[list[int]] = []
        end = -1
        for file in sorted(files, key=lambda file: (self.first[file], self.end[file], file)):
            if not groups or self.first[file] >= end:
                groups.append([])
            groups[-1].append(file)
            end = max(end, int(self.end[file]))
        return groups


def _as_range(bounds: KeyBounds) -> tuple[bytes, bytes]:
    """The smallest and largest key as cuts. If the upper cut is only known to be above a prefix, that cut is used.
    Files without key bounds (all files of a keyless table) count as a single key, because merging them yields no new
    bounds."""
    largest = bounds.upper.removesuffix(AFTER_MARKER)
    return bounds.lower, largest if largest >= bounds.lower else bounds.upper


def _distances(cuts: Sequence[bytes]) -> Weights:
    """The distance from each of the sorted cuts to the next, from the eight bytes after the common prefix of all
    cuts."""
    if len(cuts) < 2:
        return np.zeros(0)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(cuts[0], cuts[-1], strict=False)))
    words = [int.from_bytes(cut[common : common + 8].ljust(8, b"\0")) for cut in cuts]
    return np.diff(np.array(words, np.float64))


def worth_merging(space: KeySpace, sizes: Sequence[int], rewrite_share: float) -> list[int]:
    """MT-41: the files that are small compared with the bytes of overlapping smaller files, and these smaller files.

    A file is taken if smaller files that overlap it hold at least `rewrite_share` of its own bytes within its range.
    Each time its rows are rewritten, they are then in a file that is larger by that share. A row is therefore rewritten
    a logarithmic number of times.
    """
    smaller_bytes = np.zeros(len(space.weights))
    largest_taken = np.zeros(len(space.weights))
    taken: set[int] = set()
    order = sorted(range(len(sizes)), key=lambda file: (sizes[file], file))
    for file in order:
        covered = space.intervals(file)
        if covered.start == covered.stop:
            continue
        if smaller_bytes[covered].sum() >= rewrite_share * sizes[file]:
            taken.add(file)
            np.maximum(largest_taken[covered], sizes[file], out=largest_taken[covered])
        smaller_bytes[covered] += space.spread(file, sizes[file])
    for file in order:
        covered = space.intervals(file)
        if covered.start < covered.stop and largest_taken[covered].max() >= sizes[file]:
            taken.add(file)
    return sorted(taken)
