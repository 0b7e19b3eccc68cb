"""Finds the first delete of a key after a row was written.

    key     deletes of it        file at 3     file at 5     file at 9
    0       4, 7, 8              4             7             none
    1       5                    5             none          none

Scans only need the newest delete of a key, because any newer one deletes the row. Finding the commit that deleted a row
requires all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NO_DELETE = np.int64(-1)


@dataclass(frozen=True, slots=True, eq=False)
class DeleteNumbers:
    """The sequence numbers of the deletes of each of many keys. Immutable."""

    numbers: NDArray[np.int64]
    """All sequence numbers that occur, ascending."""
    codes: NDArray[np.int64]
    """Pairs of a key and the index of one of its numbers in `numbers`, as `key * len(numbers) + index`; ascending."""

    @staticmethod
    def of(keys: NDArray[np.int64], numbers: NDArray[np.int64]) -> DeleteNumbers:
        """One pair for each delete of a key, in any order; keys are numbered from 0."""
        distinct, places = np.unique(numbers, return_inverse=True)
        return DeleteNumbers(distinct, np.unique(keys * len(distinct) + places))

    def first(self, keys: NDArray[np.int64], begin: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each key, the smallest of its numbers at index `begin` of `numbers` or later, else NO_DELETE.

        If `begin` is `len(numbers)`, no number is new enough.

        >>> deletes = DeleteNumbers.of(np.array([0, 0, 0, 1]), np.array([7, 4, 8, 5]))
        >>> deletes.numbers.tolist(), deletes.first(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])).tolist()
        ([4, 5, 7, 8], [4, 7, 5, -1])
        """
        count = len(self.numbers)
        if not count:
            return np.full(len(keys), NO_DELETE)
        place = np.searchsorted(self.codes, keys * count + begin)
        found = self.codes[np.minimum(place, len(self.codes) - 1)]
        is_of_key = (place < len(self.codes)) & (begin < count) & (found // count == keys)
        return np.where(is_of_key, self.numbers[found % count], NO_DELETE)
