"""Range queries: the largest or smallest number in each of many ranges of an array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def extremes(
    better: np.ufunc, numbers: npt.NDArray[np.int64], first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """For each range from first to last, the largest (np.maximum) or smallest (np.minimum) of `numbers`, which are not
    empty.

    The result is arbitrary for an empty range. Algorithm (doubling): after step j, entry i stands for numbers i to i +
    2**j. A range is two overlapping blocks of this size.
    """
    begin = np.minimum(first, len(numbers) - 1)
    lengths = np.maximum(last - begin, 1)
    levels = np.frexp(lengths.astype(np.float64))[1] - 1
    answer = np.empty(len(first), np.int64)
    block = numbers
    for level in range(int(levels.max(initial=0)) + 1):
        width = 1 << level
        if level:
            block = better(block[: -(width >> 1)], block[width >> 1 :])
        here = np.flatnonzero(levels == level)
        starts = begin[here]
        answer[here] = better(block[starts], block[starts + lengths[here] - width])
    return answer
