"""Finds the spans that share a key with given bounds, among sorted disjoint spans (RD-10, RD-12)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.byte_search import search_bytes


@dataclass(frozen=True, slots=True, eq=False)
class EncodedStrings(Sequence[bytes]):
    """Byte strings that are decoded on access, because a search accesses only a few."""

    encoded: pa.LargeBinaryArray

    def __len__(self) -> int:
        return len(self.encoded)

    def __getitem__(self, index: int) -> bytes:  # type: ignore[override]  # A search asks for no slice.
        value: bytes = self.encoded[index].as_py()
        return value


@dataclass(frozen=True, slots=True, eq=False)
class SearchableSpans:
    """The lower and upper cuts of sorted disjoint spans, prepared for searches."""

    lowers: Sequence[bytes]
    uppers: Sequence[bytes]

    @staticmethod
    def of(spans: SpanArray, question_count: int) -> SearchableSpans:
        """`question_count` is the number of bounds that will be searched for. All cuts are decoded at once if that is
        cheaper than decoding only the ones that the searches inspect."""
        lower, upper = spans.lower.encoded, spans.upper.encoded
        if question_count * len(spans).bit_length() < len(spans):
            return SearchableSpans(EncodedStrings(lower), EncodedStrings(upper))
        return SearchableSpans(lower.to_pylist(), upper.to_pylist())

    def touching(
        self, lower: Sequence[bytes], upper: Sequence[bytes]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """RD-10, RD-12: for each pair of bounds, the range [first, last) of the spans that share a key with it. The
        upper cut of such a span is above the lower bound, and its lower cut is below the upper bound. first >= last if
        there is no such span.

            spans      [--0--)   [--1--)   [--2--)
            bounds         |--------|                 0, 2
                              ||                      1, 1

        Spans are not cut at the bounds: the file has no keys beyond them, so the rest of a span deletes nothing.
        """
        first = np.array([bisect_right(self.uppers, cut) for cut in lower], np.int64)
        last = np.array([bisect_left(self.lowers, cut) for cut in upper], np.int64)
        return first, last

    def holds(self, span: int, lower: bytes, upper: bytes) -> bool:
        """RD-10: whether every key within the bounds lies in this span."""
        return self.lowers[span] <= lower and upper <= self.uppers[span]


def touching_many(
    spans: SpanArray, lower: pa.LargeBinaryArray, upper: pa.LargeBinaryArray
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """RD-10, RD-12: the result of `SearchableSpans.touching` for bounds in arrays, computed in a few operations."""
    return (
        search_bytes(spans.upper.encoded, lower, right=True),
        search_bytes(spans.lower.encoded, upper, right=False),
    )
