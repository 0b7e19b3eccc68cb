"""Where many byte strings lie among some sorted ones.

The sorted strings mostly share a beginning, as keys do. The eight bytes behind it are one number for each string, which
numpy searches for all questions at once; what they leave open, in the order of bytes, is searched string by string.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import BinaryType

from tableformat.keys.sort_words import ByteWords, sort_words_of


@dataclass(frozen=True, slots=True, eq=False)
class EncodedStrings(Sequence[bytes]):
    """Byte strings that are decoded when they are looked at: a search looks at few."""

    encoded: pa.LargeBinaryArray

    def __len__(self) -> int:
        return len(self.encoded)

    def __getitem__(self, index: int) -> bytes:  # type: ignore[override]  # A search asks for no slice.
        value: bytes = self.encoded[index].as_py()
        return value


@dataclass(frozen=True, slots=True, eq=False)
class SortedStrings:
    """Byte strings in the order of unsigned bytes, none of them null, prepared to be searched many times."""

    strings: pa.LargeBinaryArray
    shared: bytes
    """What all of them begin with."""
    words: npt.NDArray[np.int64]
    """The eight bytes behind that as a number."""

    @staticmethod
    def of(strings: pa.LargeBinaryArray) -> SortedStrings:
        shared = _shared_beginning(strings[0].as_py(), strings[-1].as_py()) if len(strings) else b""
        return SortedStrings(strings, shared, _words(strings, len(shared)))

    def search(self, questions: pa.LargeBinaryArray, *, right: bool) -> npt.NDArray[np.int64]:
        """For each question how many of the strings are below it; with `right`, below it or equal."""
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
        alone = np.flatnonzero(end - begin == 1)
        if len(alone):
            neighbours, chosen = ordered.take(pa.array(begin[alone])), questions.take(pa.array(inside[alone]))
            low[inside[alone]] += np.asarray((pc.less_equal if right else pc.less)(neighbours, chosen))
        bisect = bisect_right if right else bisect_left
        decoded = EncodedStrings(ordered)
        for place in np.flatnonzero(end - begin > 1).tolist():
            row = int(inside[place])
            question: bytes = questions[row].as_py()
            low[row] = bisect(decoded, question, int(begin[place]), int(end[place]))
        return low


def search_bytes(ordered: pa.LargeBinaryArray, questions: pa.LargeBinaryArray, *, right: bool) -> npt.NDArray[np.int64]:
    """For each question how many of the ordered strings are below it; with `right`, below it or equal.

    None of them is null. The order is that of unsigned bytes.

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
    """Where in the sorted words those begin and end that are equal to each of the others. One search tells both where
    no word is there twice.

    >>> [bounds.tolist() for bounds in _equal_runs(np.array([3, 5, 5, 7]), np.array([4, 5, 7, 9]))]
    [[1, 1, 3, 4], [1, 3, 4, 4]]
    """
    begin = np.searchsorted(known, asked, side="left")
    last = len(known) - 1
    end = begin + ((known[np.minimum(begin, last)] == asked) & (begin <= last))
    goes_on = np.flatnonzero((known[np.minimum(end, last)] == asked) & (begin < end) & (end <= last))
    end[goes_on] = np.searchsorted(known, asked[goes_on], side="right")
    return begin, end


def _shared_beginning(first: bytes, last: bytes) -> bytes:
    length = next((index for index, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    return min(first, last, key=len) if length is None else first[:length]


def _words(strings: pa.LargeBinaryArray, skipped: int) -> npt.NDArray[np.int64]:
    """The eight bytes from `skipped` on as a number, strings that end before filled up with zeros."""
    whole = sort_words_of(strings, BinaryType(), len(strings))
    assert isinstance(whole, ByteWords), "strings of bytes have words of bytes"
    return ByteWords(whole.starts + skipped, whole.ends, whole.buffer, None, is_variable=False).level(0, 1, slice(None))
