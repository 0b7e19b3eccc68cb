"""Locates rows in any order among boundaries: a trie of the boundaries' sort words, walked by batches of rows.

The boundaries are the cuts of sorted disjoint spans in one list. A row is in a span if an odd number of boundaries is
at or below its key:

    boundaries      |0       1|     |2     3|
    rows          a   b    c     d     e       f
    at or below   0   1    1     2     3       4

A node of the trie stands for boundaries that begin with the same sort words. A row that differs from all children of
its node is settled; only rows that equal a child go on to the next node. With a composite key, most rows are settled by
the first sort word of the first column, and later columns are read only for the few other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.byte_search import SortedStrings
from tableformat.keys.long_words import LONG_LEVELS, long_values_of, with_long_values
from tableformat.keys.sort_words import Codes, Flags, SortWords, level_count, sort_words_of


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryColumn:
    """One key column of the boundaries."""

    lower: SortWords
    upper: SortWords
    level_count: int
    long_values: SortedStrings | None = None
    """The long values of the cuts, if there are any. Rows are compared `with_long_values` then, too."""

    @property
    def has_null(self) -> bool:
        """Whether the column is null or not bound in some boundary."""
        return self.lower.valid is not None or self.upper.valid is not None

    def valid(self) -> Flags:
        """For each boundary, whether it has a value. False if the value is null or not bound."""
        span_count = len(self.level(0)) // 2
        present = [
            np.ones(span_count, np.bool_) if flags is None else flags for flags in (self.lower.valid, self.upper.valid)
        ]
        return np.stack(present, axis=1).reshape(-1)

    def level(self, index: int) -> Codes:
        """Sort word `index` of every boundary: lower cut 0, upper cut 0, lower cut 1, ..."""
        everything = slice(None)
        lower = self.lower.level(index, self.level_count, everything)
        upper = self.upper.level(index, self.level_count, everything)
        return np.stack([lower, upper], axis=1).reshape(-1)


@dataclass(frozen=True, slots=True, eq=False)
class Boundaries:
    """2n cuts of n spans: lower 0, upper 0, lower 1, ..."""

    depth: npt.NDArray[np.int8]
    after: Flags
    columns: tuple[BoundaryColumn, ...]
    """The leading columns that some cut binds."""

    def __len__(self) -> int:
        return len(self.depth)


def boundaries_of(spans: SpanArray) -> Boundaries:
    """The cuts of sorted disjoint spans in one list, in key order, as sort words of the columns that some cut binds."""
    depth = np.stack([spans.lower.depth, spans.upper.depth], axis=1).reshape(-1)
    after = np.stack([spans.lower.after, spans.upper.after], axis=1).reshape(-1)
    columns = []
    for position in range(int(depth.max(initial=0))):
        key_type = spans.key.types[position]
        lower = sort_words_of(spans.lower.columns[position], key_type, len(spans))
        upper = sort_words_of(spans.upper.columns[position], key_type, len(spans))
        levels = max(level_count(lower, key_type), level_count(upper, key_type))
        columns.append(_boundary_column(lower, upper, levels))
    return Boundaries(depth, after, tuple(columns))


def _boundary_column(lower: SortWords, upper: SortWords, levels: int) -> BoundaryColumn:
    if levels <= LONG_LEVELS:
        return BoundaryColumn(lower, upper, levels)
    long_values = long_values_of([lower, upper])
    lower, upper = with_long_values(lower, long_values), with_long_values(upper, long_values)
    return BoundaryColumn(lower, upper, LONG_LEVELS, long_values)


_BUCKETS_PER_CODE: Final = 32
_MIN_BUCKET_BITS: Final = 12
_MAX_BUCKET_BITS: Final = 22
_FEW_CODES: Final = 8


class CodeIndex:
    """Sorted distinct codes, divided into equal buckets. If a bucket has no code, the bucket alone is the answer.

    numpy's search costs a cache miss and a mispredicted branch in every step, the bucket table only one load. Skewed
    codes may concentrate in a few buckets. Rows in these are searched, which is slower but always correct.
    """

    __slots__ = ("_below", "_codes", "_is_shared", "_shift", "_smallest")

    def __init__(self, codes: Codes) -> None:
        self._codes = codes
        self._below: Codes | None = None
        if len(codes) <= _FEW_CODES:
            return
        smallest, largest = int(codes[0]), int(codes[-1])
        wanted_bits = (len(codes) * _BUCKETS_PER_CODE).bit_length()
        bucket_bits = min(max(wanted_bits, _MIN_BUCKET_BITS), _MAX_BUCKET_BITS)
        shift = max((largest - smallest).bit_length() - bucket_bits, 0)
        bucket_count = ((largest - smallest) >> shift) + 1
        bucket_of_code = _distance(codes, smallest) >> np.uint64(shift)
        occupants = np.bincount(bucket_of_code.astype(np.int64), minlength=bucket_count)
        # The last entry is for codes above all codes of this set.
        self._below = np.concatenate([[0], np.cumsum(occupants)])
        self._is_shared = np.append(occupants > 0, False)
        self._shift, self._smallest = np.uint64(shift), smallest

    def find(self, codes: Codes) -> tuple[Codes, Codes]:
        """For each code, the number of this set's codes below it. Also the positions, in the input, of the codes that
        are in this set."""
        ours = self._codes
        if len(ours) == 0:
            return np.zeros(len(codes), np.int64), np.zeros(0, np.int64)
        if len(ours) == 1:
            return (codes > ours[0]).astype(np.int64), np.flatnonzero(codes == ours[0])
        if self._below is None:
            below = np.searchsorted(ours, codes).astype(np.int64, copy=False)
            return below, np.flatnonzero(ours[np.minimum(below, len(ours) - 1)] == codes)
        bucket = np.minimum(_distance(codes, self._smallest) >> self._shift, np.uint64(len(self._is_shared) - 1))
        bucket = bucket.view(np.int64)
        below = self._below[bucket]
        # The distance of a code below all codes of this set wraps to a very large number.
        below[codes < self._smallest] = 0
        unsure = np.flatnonzero(self._is_shared[bucket])
        searched = np.searchsorted(ours, codes[unsure])
        below[unsure] = searched
        return below, unsure[ours[np.minimum(searched, len(ours) - 1)] == codes[unsure]]


def _distance(codes: Codes, smallest: int) -> np.typing.NDArray[np.uint64]:
    """codes - smallest as unsigned numbers, because differences of int64 may not fit int64."""
    return np.ascontiguousarray(codes).view(np.uint64) - np.uint64(smallest % (1 << 64))


Indices: TypeAlias = npt.NDArray[np.int64]

NULL_LEVEL = -1
"""The level of a column that separates nulls from values."""


@dataclass(frozen=True, slots=True, eq=False)
class TrieLevel:
    """All nodes of one depth and their children."""

    column: int
    level: int
    """The index of the sort word in the column, or NULL_LEVEL."""
    level_count: int
    codes: CodeIndex
    """Distinct sort words of all children."""
    radix: int
    """More than the number of slots (on a code and between two) that a sort word can have among `codes`."""
    is_single_node: bool
    child_keys: Indices
    """Sorted: node * radix + slot of the sort word, then node * radix + radix - 1 for "above all children of the
    node"."""
    odd_below: Flags
    """For each child key, whether an odd number of boundaries is below the child."""
    odd_at: Flags
    """For each child key, the answer for rows equal to the child, if `next_node` is -1."""
    next_node: Indices
    """For each child key, the child's node on the next level; -1 if its rows are settled."""

    def descend(self, node: Indices, codes: Codes) -> tuple[Flags, Indices, Indices]:
        """For each row, whether it is deleted, as far as this level settles it; the rows that go on; and their nodes on
        the next level."""
        index, equal = self.codes.find(codes)
        if self.is_single_node:
            # All codes are children of the single node, so an index among the codes is also an index among the child
            # keys.
            slot = index
        else:
            target = 2 * index + node * self.radix
            target[equal] += 1
            slot = np.searchsorted(self.child_keys, target)
            equal = equal[self.child_keys[slot[equal]] == target[equal]]
        deleted = self.odd_below[slot]
        child = slot[equal]
        deleted[equal] = self.odd_at[child]
        goes_on = self.next_node[child] >= 0
        return deleted, equal[goes_on], self.next_node[child[goes_on]]


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """Nodes of one depth: each a range of boundaries."""

    first: Indices
    end: Indices


class BoundaryTrie:
    """Levels are built when rows reach them, so a long common prefix that no row shares costs nothing."""

    def __init__(self, boundaries: Boundaries, columns_with_nulls: tuple[bool, ...]) -> None:
        """`columns_with_nulls`: for each key column, whether rows may be null in it."""
        self._boundaries = boundaries
        self._befores = _running_counts(boundaries, after=False)
        self._afters = _running_counts(boundaries, after=True)
        root = self._settled(_Nodes(np.zeros(1, np.int64), np.array([len(boundaries)])), 0)
        self.all_rows_deleted: bool | None = bool(root.first[0] & 1) if root.first[0] == root.end[0] else None
        """The answer for every row if no boundary depends on a row."""
        self._levels: list[TrieLevel] = []
        self._pending = self._build(root, columns_with_nulls)

    def level(self, depth: int) -> TrieLevel:
        """The level of that depth; levels above it are built first."""
        while len(self._levels) <= depth:
            self._levels.append(next(self._pending))
        return self._levels[depth]

    def _build(self, nodes: _Nodes, columns_with_nulls: tuple[bool, ...]) -> Iterator[TrieLevel]:
        for position, column in enumerate(self._boundaries.columns):
            has_null = column.has_null or columns_with_nulls[position]
            for level in range(NULL_LEVEL if has_null else 0, column.level_count):
                codes = column.valid().astype(np.int64) if level == NULL_LEVEL else column.level(level)
                is_last = level == column.level_count - 1
                built, nodes = self._build_level(nodes, position, level, codes, is_last=is_last)
                yield built

    def _build_level(
        self, nodes: _Nodes, position: int, level: int, codes: Codes, *, is_last: bool
    ) -> tuple[TrieLevel, _Nodes]:
        """One level from its nodes, and the nodes of the next one.

        `codes`: the sort word of this level for every boundary. `is_last`: it is the last one of its column, after
        which the cuts that bind no further column are settled.

        The first level of the prefixes (1, 5), (1, 7) and (4): six boundaries under one node, whose children are the
        values 1 and 4. Four boundaries begin with 1, and the second column distinguishes them: that child is node 0 of
        the next level. The two of prefix (4) bind no further column: the child is settled, with five boundaries at or
        below its rows, an odd number, so that they are deleted. Rows between the children and above them have an even
        number below. The entries are for child 1, for child 4 and for what lies above both:

        >>> from pyiceberg.types import LongType
        >>> from tableformat.deletes.spans.spans import SpanArray, sort_and_merge, spans_of_prefixes
        >>> from tableformat.keys.key_columns import KeyColumns
        >>> key = KeyColumns((1, 2), ("a", "b"), (LongType(), LongType()))
        >>> pairs, single = pa.table({"a": [1, 1], "b": [5, 7]}), pa.table({"a": [4]})
        >>> spans = sort_and_merge(SpanArray.concat([spans_of_prefixes(key, pairs), spans_of_prefixes(key, single)]))
        >>> level = BoundaryTrie(boundaries_of(spans), (False, False)).level(0)
        >>> level.odd_below.tolist(), level.odd_at.tolist(), level.next_node.tolist()
        ([False, False, False], [False, True, False], [0, -1, -1])
        >>> deleted, going_on, node = level.descend(np.zeros(4, np.int64), np.array([0, 1, 4, 9]))
        >>> deleted.tolist(), going_on.tolist(), node.tolist()  # Row 1 goes on to the second column.
        ([False, False, True, False], [1], [0])
        """
        lengths = nodes.end - nodes.first
        node = np.repeat(np.arange(len(lengths)), lengths)
        boundary = np.arange(len(node)) + np.repeat(nodes.first - (np.cumsum(lengths) - lengths), lengths)
        codes = codes[boundary]
        begins = np.ones(len(node), np.bool_)
        begins[1:] = (node[1:] != node[:-1]) | (codes[1:] != codes[:-1])
        starts = np.flatnonzero(begins)
        stops = np.append(starts[1:], len(node)) - 1
        children = _Nodes(boundary[starts], boundary[stops] + 1)
        below = children.first
        if is_last:
            children = self._settled(children, position + 1)
        goes_on = children.first < children.end
        next_node = np.where(goes_on, np.cumsum(goes_on) - 1, -1)
        distinct = np.unique(codes[starts])
        radix = 2 * len(distinct) + 2
        keys = node[starts] * radix + 2 * np.searchsorted(distinct, codes[starts]) + 1
        top_keys = (np.arange(len(lengths)) + 1) * radix - 1
        order = np.argsort(np.concatenate([keys, top_keys]), kind="stable")
        none = np.full(len(lengths), -1, np.int64)
        built = TrieLevel(
            column=position,
            level=level,
            level_count=self._boundaries.columns[position].level_count,
            codes=CodeIndex(distinct),
            radix=radix,
            is_single_node=len(lengths) == 1,
            child_keys=np.concatenate([keys, top_keys])[order],
            odd_below=_odd(np.concatenate([below, nodes.end]))[order],
            odd_at=_odd(np.concatenate([children.first, nodes.end]))[order],
            next_node=np.concatenate([next_node, none])[order],
        )
        return built, _Nodes(children.first[goes_on], children.end[goes_on])

    def _settled(self, nodes: _Nodes, depth: int) -> _Nodes:
        """The ranges without the cuts that bind only `depth` columns: first those before, last those after."""
        befores, afters = self._befores[depth], self._afters[depth]
        first = nodes.first + befores[nodes.end] - befores[nodes.first]
        end = nodes.end - (afters[nodes.end] - afters[nodes.first])
        return _Nodes(first, end)


def _running_counts(boundaries: Boundaries, *, after: bool) -> list[Indices]:
    """For each depth: entry i is the number of boundaries with this depth and side among the first i."""
    counts = []
    for depth in range(len(boundaries.columns) + 1):
        chosen = (boundaries.depth == depth) & (boundaries.after == after)
        counts.append(np.concatenate([[0], np.cumsum(chosen)]))
    return counts


def _odd(counts: Indices) -> Flags:
    return (counts & 1).astype(np.bool_)
