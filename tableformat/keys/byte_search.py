"""Finds the positions of many byte strings among sorted ones.

Sorted keys mostly share a prefix. The eight bytes after the prefix are one number for each string, which numpy searches
for all questions at once. The remaining ranges are bisected for all questions at once, in the order of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import BinaryType

from tableformat.keys.sort_words import ByteWords, sort_words_of


@dataclass(frozen=True, slots=True, eq=False)
class SortedStrings:
    """Byte strings in the order of unsigned bytes, without nulls, prepared for many searches."""

    strings: pa.LargeBinaryArray
    shared: bytes
    """The common prefix of all strings."""
    words: npt.NDArray[np.int64]
    """The eight bytes after the prefix as a number."""

    @staticmethod
    def of(strings: pa.LargeBinaryArray) -> SortedStrings:
        shared = _shared_beginning(strings[0].as_py(), strings[-1].as_py()) if len(strings) else b""
        return SortedStrings(strings, shared, _words(strings, len(shared)))

    def search(self, questions: pa.LargeBinaryArray, *, right: bool) -> npt.NDArray[np.int64]:
        """For each question the number of strings that are less; with `right`, less or equal."""
        ordered, shared, count = self.strings, self.shared, len(questions)
        if len(ordered) == 0 or count == 0:
            return np.zeros(count, np.int64)
        begins_so = np.asarray(pc.starts_with(questions, pattern=shared)) if shared else np.ones(count, np.bool_)
        is_above = np.asarray(pc.greater(questions, pa.scalar(shared, pa.large_binary())))
        low = np.where(is_above, len(ordered), 0)
        inside = np.flatnonzero(begins_so)
        if len(inside) == 0:
            return low
        asked = _words(questions if len(inside) == count else questions.take(pa.array(inside)), len(shared))
        begin, end = _equal_runs(self.words, asked)
        low[inside] = begin
        alike = np.flatnonzero(end > begin)
        if len(alike):
            asked_again = questions.take(pa.array(inside[alike]))
            low[inside[alike]] = _below(ordered, asked_again, begin[alike], end[alike], right=right)
        return low


def search_bytes(ordered: pa.LargeBinaryArray, questions: pa.LargeBinaryArray, *, right: bool) -> npt.NDArray[np.int64]:
    """For each question the number of ordered strings that are less; with `right`, less or equal.

    There are no nulls. The order is that of unsigned bytes.

    >>> ordered = pa.array([b"ab", b"abc", b"b"], pa.large_binary())
    >>> search_bytes(ordered, pa.array([b"", b"ab", b"abd", b"c"], pa.large_binary()), right=True).tolist()
    [0, 1, 2, 3]
    >>> search_bytes(ordered, pa.array([b"", b"ab", b"abd", b"c"], pa.large_binary()), right=False).tolist()
    [0, 0, 2, 3]
    """
    return SortedStrings.of(ordered).search(questions, right=right)


def _equal_runs(
    known: npt.NDArray[np.int64], asked: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The begin and end, among the sorted words, of the words that equal each of the others. If no word is repeated,
    one search finds both.

    >>> [bounds.tolist() for bounds in _equal_runs(np.array([3, 5, 5, 7]), np.array([4, 5, 7, 9]))]
    [[1, 1, 3, 4], [1, 3, 4, 4]]
    """
    begin = np.searchsorted(known, asked, side="left")
    last = len(known) - 1
    end = begin + ((known[np.minimum(begin, last)] == asked) & (begin <= last))
    goes_on = np.flatnonzero((known[np.minimum(end, last)] == asked) & (begin < end) & (end <= last))
    end[goes_on] = np.searchsorted(known, asked[goes_on], side="right")
    return begin, end


def _below(
    ordered: pa.LargeBinaryArray,
    questions: pa.LargeBinaryArray,
    begin: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    *,
    right: bool,
) -> npt.NDArray[np.int64]:
    """The result of `search` for questions whose ranges are known: all ranges are bisected at once."""
    low, high = begin.copy(), end.copy()
    is_below = pc.less_equal if right else pc.less
    still_open = np.arange(len(low))
    while len(still_open):
        middle = (low[still_open] + high[still_open]) // 2
        asked = questions if len(still_open) == len(low) else questions.take(pa.array(still_open))
        goes_up = np.asarray(is_below(ordered.take(pa.array(middle)), asked))
        low[still_open] = np.where(goes_up, middle + 1, low[still_open])
        high[still_open] = np.where(goes_up, high[still_open], middle)
        still_open = np.flatnonzero(low < high)
    return low


def _shared_beginning(first: bytes, last: bytes) -> bytes:
    shorter = min(len(first), len(last))
    differs = np.frombuffer(first, np.uint8, shorter) != np.frombuffer(last, np.uint8, shorter)
    return first[: int(differs.argmax())] if differs.any() else first[:shorter]


def _words(strings: pa.LargeBinaryArray, skipped: int) -> npt.NDArray[np.int64]:
    """The eight bytes from `skipped` on as a number. Shorter strings are padded with zeros."""
    whole = sort_words_of(strings, BinaryType(), len(strings))
    assert isinstance(whole, ByteWords), "strings of bytes have words of bytes"
    return ByteWords(whole.starts + skipped, whole.ends, whole.buffer, None, is_variable=False).level(0, 1, slice(None))
