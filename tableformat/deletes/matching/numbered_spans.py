"""Range deletes of several commits, to find which of them was the first to reach a row.

    7:        e----j            intervals   b-c  c-e  e-g  g-h  h-j
    5:    c------h                          3    3    3    5    7
    3:  b-----g                                  5    5    7
                                                      7

A skyline (RD-9) keeps the newest number of each interval, which is all that a scan needs. Here each interval keeps all
of its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tableformat.deletes.matching.delete_numbers import NO_DELETE, DeleteNumbers
from tableformat.deletes.positions import expanded
from tableformat.deletes.spans.cut_ranks import rank_cuts
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.byte_search import search_bytes
from tableformat.keys.encoding import encode_runs


@dataclass(frozen=True, slots=True, eq=False)
class NumberedSpans:
    """Spans of one key that may overlap, cut into disjoint intervals. Immutable; thread-safe."""

    intervals: SpanArray
    """The intervals that at least one span covers: sorted, disjoint, without numbers."""
    cuts: pa.LargeBinaryArray
    """RD-1: the encoded cuts where intervals begin and end, ascending."""
    deletes: DeleteNumbers
    """The numbers of the spans over each interval. The key is the cut where the interval begins."""
    field_ids: tuple[int, ...]
    """The leading key columns that some cut binds. Only these are needed of a row."""

    @staticmethod
    def of(spans: SpanArray, *, pairs_max: int) -> NumberedSpans | None:
        """The intervals of numbered spans. None if there are more than `pairs_max` pairs of an interval and a span over
        it."""
        assert spans.sequence_numbers is not None, "spans have numbers once they are loaded (RD-8)"
        ranks = rank_cuts(spans.lower, spans.upper)
        lengths = np.maximum(ranks.upper - ranks.lower, 0)
        if int(lengths.sum()) > pairs_max:
            return None
        keys, numbers = expanded(ranks.lower, ranks.lower + lengths), np.repeat(spans.sequence_numbers, lengths)
        begins = np.unique(keys)
        lower, upper = ranks.cuts_at(begins), ranks.cuts_at(begins + 1)
        depth = max(int(spans.lower.depth.max(initial=0)), int(spans.upper.depth.max(initial=0)), 1)
        return NumberedSpans(
            SpanArray(spans.key, lower, upper, None),
            ranks.cuts_at(np.arange(ranks.rank_count)).encoded,
            DeleteNumbers.of(keys, numbers),
            spans.key.field_ids[:depth],
        )

    def first(
        self, columns: Sequence[pa.ChunkedArray], begin: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """RD-1: the rows, ascending, that a span with a number from `begin` on covers, each with the smallest such
        number.

        `columns` are the columns of `field_ids`, in types that promote to the key's. `begin` has an index in
        `deletes.numbers` for each row.
        """
        keys, begins = encode_runs(columns, self.intervals.key.types[: len(self.field_ids)])
        of_row = np.repeat(search_bytes(self.cuts, keys, right=True) - 1, np.diff(begins, append=len(begin)))
        rows = np.flatnonzero(of_row >= 0)
        numbers = self.deletes.first(of_row[rows], begin[rows])
        is_deleted = numbers != NO_DELETE
        return rows[is_deleted], numbers[is_deleted]
