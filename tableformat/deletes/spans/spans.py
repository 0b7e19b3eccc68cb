"""Spans: ranges of the key space between two cuts. Range deletes consist of spans.

lower cut                upper cut
    |########################|      sequence number: rows with a smaller one are deleted (RD-2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.deletes.spans.cut_ranks import rank_cuts
from tableformat.deletes.spans.cuts import CutArray, cut_after, cut_before, cuts_at_prefixes
from tableformat.errors import InvalidKeyError
from tableformat.keys.arrow_columns import as_key_array
from tableformat.keys.families import arrow_type_of
from tableformat.keys.key_columns import KeyColumns, leading_columns

INHERITED: Final = -1
"""The sequence number of a span that inherits it from the manifest entry (RD-8), if other spans have their own."""


@dataclass(frozen=True, slots=True, eq=False)
class SpanArray:
    """n spans of one key; span i covers the keys between lower cut i and upper cut i.

    >>> from pyiceberg.types import LongType, StringType
    >>> from tableformat.keys.key_columns import KeyColumns, leading_columns
    >>> key = KeyColumns((1, 2), ("id1", "id2"), (StringType(), LongType()))
    >>> spans = SpanArray.concat([span_of_bounds(key, ("A", 3), ("C",)), span_of_bounds(key, ("B", 7), ("D",))])
    >>> merged = sort_and_merge(spans).with_sequence_number(5)
    >>> len(spans), len(merged), merged.sequence_numbers.tolist()
    (2, 1, [5])
    """

    key: KeyColumns
    lower: CutArray
    upper: CutArray
    sequence_numbers: npt.NDArray[np.int64] | None
    """The sequence numbers. None: all spans inherit the number of their manifest entry (RD-8). INHERITED: this span
    does."""

    def __post_init__(self) -> None:
        lower, upper, numbers = self.lower, self.upper, self.sequence_numbers
        assert len(lower) == len(upper), f"{len(lower)} lower and {len(upper)} upper cuts"
        assert numbers is None or len(numbers) == len(lower), f"{len(numbers)} sequence numbers for {len(lower)} spans"
        ids = self.key.field_ids
        assert lower.key.field_ids == ids, f"spans of fields {ids}, lower cuts of fields {lower.key.field_ids}"
        assert upper.key.field_ids == ids, f"spans of fields {ids}, upper cuts of fields {upper.key.field_ids}"

    def __len__(self) -> int:
        return len(self.lower)

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> SpanArray:
        """The spans at the given indexes, in their order."""
        numbers = None if self.sequence_numbers is None else self.sequence_numbers[indices]
        return SpanArray(self.key, self.lower.take(indices), self.upper.take(indices), numbers)

    def slice(self, start: int, stop: int) -> SpanArray:
        """Spans start to stop, without a copy."""
        numbers = None if self.sequence_numbers is None else self.sequence_numbers[start:stop]
        return SpanArray(self.key, self.lower.slice(start, stop), self.upper.slice(start, stop), numbers)

    def with_sequence_number(self, sequence_number: int) -> SpanArray:
        """RD-8: the spans with `number`, the manifest entry's, for spans without a number of their own."""
        return self.with_sequence_numbers(np.full(len(self), sequence_number, np.int64))

    def with_sequence_numbers(self, inherited: npt.NDArray[np.int64]) -> SpanArray:
        """RD-8: the same for spans of several entries, with the number that each span would inherit."""
        if self.sequence_numbers is None:
            return replace(self, sequence_numbers=inherited)
        inherits = self.sequence_numbers == INHERITED
        if not inherits.any():
            return self
        return replace(self, sequence_numbers=np.where(inherits, inherited, self.sequence_numbers))

    @staticmethod
    def empty(key: KeyColumns) -> SpanArray:
        """No spans of the key, without sequence numbers."""
        columns = tuple(pa.array([], arrow_type_of(key_type)) for key_type in key.types)
        cuts = CutArray(key, columns, np.zeros(0, np.int8), np.zeros(0, np.bool_))
        return SpanArray(key, cuts, cuts, None)

    @staticmethod
    def concat(arrays: Sequence[SpanArray]) -> SpanArray:
        """All spans in the given order. At least one array is required. All must have one key, and all or none have
        numbers."""
        if len(arrays) == 1:
            return arrays[0]
        lower = CutArray.concat([spans.lower for spans in arrays])
        upper = CutArray.concat([spans.upper for spans in arrays])
        numbered = [spans.sequence_numbers for spans in arrays if spans.sequence_numbers is not None]
        assert len(numbered) in {0, len(arrays)}, "spans with and without sequence numbers cannot be combined"
        return SpanArray(arrays[0].key, lower, upper, np.concatenate(numbered) if numbered else None)


def spans_of_prefixes(key: KeyColumns, prefixes: pa.Table) -> SpanArray:
    """RD-5: one span before(p) .. after(p) for every distinct prefix; sorted and disjoint (RD-7).

    The columns of the table are the leading columns of the key, in any order. Null is a value like others. Raises
    InvalidKeyError, which names the columns and the key, for other columns.

    >>> from pyiceberg.types import LongType, StringType
    >>> from tableformat.keys.key_columns import KeyColumns, leading_columns
    >>> key = KeyColumns((1, 2), ("id1", "id2"), (StringType(), LongType()))
    >>> spans = spans_of_prefixes(key, pa.table({"id1": ["B", "A", "B"]}))
    >>> spans.lower.columns[0].to_pylist(), spans.lower.after.tolist(), spans.upper.after.tolist()
    (['A', 'B'], [False, False], [True, True])
    """
    depth = prefixes.num_columns
    leading_columns(key.names, prefixes.column_names)
    leading = [
        as_key_array(prefixes.column(name), key_type, name=name)
        for name, key_type in zip(key.names[:depth], key.types[:depth], strict=True)
    ]
    lower = cuts_at_prefixes(key, leading, after=False)
    order = np.asarray(pc.sort_indices(lower.encoded))
    ordered = lower.encoded.take(pa.array(order))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.asarray(pc.not_equal(ordered[1:], ordered[:-1]))
    if not (is_first.all() and (order == np.arange(len(order))).all()):
        lower = lower.take(order[is_first])
    return SpanArray(key, lower, lower.above_prefixes(), None)


def span_of_bounds(key: KeyColumns, lower: tuple[Any, ...] | None, upper: tuple[Any, ...] | None) -> SpanArray:
    """The span before(lower) .. before(upper), half-open. It is empty if they are equal.

    None as a bound is open and includes nulls; None inside a tuple is the null value. Raises InvalidKeyError if lower
    is above upper, if a value does not fit its column, and if there are more values than key columns.
    """
    if lower == () or upper == ():
        raise InvalidKeyError(f"an empty tuple is not a bound on key {key}; use None for an open side.")
    lower_cut = cut_before(key, lower or ())
    upper_cut = cut_after(key, ()) if upper is None else cut_before(key, upper)
    lower_bytes, upper_bytes = lower_cut.encoded[0].as_py(), upper_cut.encoded[0].as_py()
    if lower_bytes > upper_bytes:
        raise InvalidKeyError(f"lower bound {lower!r} is above upper bound {upper!r} on key {key}. Swap the bounds.")
    if lower_bytes == upper_bytes:
        return SpanArray.empty(key)
    return SpanArray(key, lower_cut, upper_cut, None)


def sort_and_merge(spans: SpanArray) -> SpanArray:
    """RD-7: the union of spans of one sequence number, sorted and disjoint. Spans that overlap or touch are joined."""
    numbers = spans.sequence_numbers
    assert numbers is None or len(np.unique(numbers)) <= 1, "spans of several sequence numbers: use skyline"
    if _is_merged(spans):
        return spans
    ranks = rank_cuts(spans.lower, spans.upper)
    filled = np.flatnonzero(ranks.lower < ranks.upper)
    order = filled[np.argsort(ranks.lower[filled], kind="stable")]
    lower, reach = ranks.lower[order], np.maximum.accumulate(ranks.upper[order])
    begins = np.ones(len(order), np.bool_)
    begins[1:] = lower[1:] > reach[:-1]
    ends = np.append(begins[1:], True)[: len(order)]
    count = int(begins.sum())
    merged_numbers = None if numbers is None else numbers[:1].repeat(count)
    return SpanArray(spans.key, ranks.cuts_at(lower[begins]), ranks.cuts_at(reach[ends]), merged_numbers)


def _is_merged(spans: SpanArray) -> bool:
    """Whether the spans are already sorted, with gaps between them. This is true for prefixes unless one begins with
    another."""
    begins, ends = spans.lower.encoded, spans.upper.encoded
    if not pc.all(pc.less(begins, ends), min_count=0).as_py():
        return False
    return bool(pc.all(pc.less(ends[:-1], begins[1:]), min_count=0).as_py())
