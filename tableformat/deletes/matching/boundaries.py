"""The cuts of sorted disjoint spans in one list, as words that rows are compared with.

A row lies in a span when an odd number of these boundaries lies at or below its key:

    boundaries      |0       1|     |2     3|
    rows          a   b    c     d     e       f
    at or below   0   1    1     2     3       4
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.sort_words import Codes, Flags, KeyWords, level_count, words_of


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryColumn:
    """One key column of the boundaries."""

    lower: KeyWords
    upper: KeyWords
    level_count: int

    @property
    def has_null(self) -> bool:
        return self.lower.valid is not None or self.upper.valid is not None

    def valid(self) -> Flags:
        """Boundary by boundary: False where the value is null (or not bound)."""
        span_count = len(self.level(0)) // 2
        present = [
            np.ones(span_count, np.bool_) if flags is None else flags for flags in (self.lower.valid, self.upper.valid)
        ]
        return np.stack(present, axis=1).reshape(-1)

    def level(self, index: int) -> Codes:
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
    """Only as many as some cut binds."""

    def __len__(self) -> int:
        return len(self.depth)


def boundaries_of(spans: SpanArray) -> Boundaries:
    depth = np.stack([spans.lower.depth, spans.upper.depth], axis=1).reshape(-1)
    after = np.stack([spans.lower.after, spans.upper.after], axis=1).reshape(-1)
    columns = []
    for position in range(int(depth.max(initial=0))):
        key_type = spans.key.types[position]
        lower = words_of(spans.lower.columns[position], key_type, len(spans))
        upper = words_of(spans.upper.columns[position], key_type, len(spans))
        levels = max(level_count(lower, key_type), level_count(upper, key_type))
        columns.append(BoundaryColumn(lower, upper, levels))
    return Boundaries(depth, after, tuple(columns))
