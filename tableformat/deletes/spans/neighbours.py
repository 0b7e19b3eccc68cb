"""Joins spans between which no key can lie, though their cuts differ (RD-14).

before('A', 3)  after('A', 3)   before('A', 4)  after('A', 4)         before('A', 3)            after('A', 4)
      |#############|                 |#############|         becomes       |##########################|
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import IntegerType, LongType

from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import SpanArray


def joined_neighbours(spans: SpanArray) -> SpanArray:
    """RD-14: the same keys in fewer spans. `spans` are sorted and disjoint.

    Two spans with one sequence number are joined if they have the same values before the last bound column, the upper
    cut of the first is after an integer, and the lower cut of the second is before the next integer.

    >>> from pyiceberg.types import LongType
    >>> from tableformat.deletes.spans.spans import spans_of_prefixes
    >>> from tableformat.keys.key_columns import KeyColumns
    >>> spans = spans_of_prefixes(KeyColumns((1,), ("n",), (LongType(),)), pa.table({"n": [3, 4, 5, 7, None]}))
    >>> joined = joined_neighbours(spans)
    >>> joined.lower.columns[0].to_pylist(), joined.upper.columns[0].to_pylist()
    ([None, 3, 7], [None, 5, 7])
    """
    if len(spans) < 2:
        return spans
    ends = np.append(~_touches_next(spans), True)
    if ends.all():
        return spans
    begins = np.append(True, ends[:-1])
    numbers = None if spans.sequence_numbers is None else spans.sequence_numbers[begins]
    first, last = np.flatnonzero(begins), np.flatnonzero(ends)
    return SpanArray(spans.key, spans.lower.take(first), spans.upper.take(last), numbers)


def _touches_next(spans: SpanArray) -> npt.NDArray[np.bool_]:
    """For each span except the last, whether the next one has the same number and no key lies between them."""
    count = len(spans)
    above, below = spans.upper.slice(0, count - 1), spans.lower.slice(1, count)
    faces = above.after & ~below.after & (above.depth == below.depth)
    if spans.sequence_numbers is not None:
        faces &= spans.sequence_numbers[:-1] == spans.sequence_numbers[1:]
    touches = np.zeros(count - 1, np.bool_)
    for position, key_type in enumerate(spans.key.types):
        faces_here = faces & (above.depth == position + 1)
        if isinstance(key_type, IntegerType | LongType) and faces_here.any():
            found = np.flatnonzero(faces_here & _is_successor(above.columns[position], below.columns[position]))
            if len(found):
                touches[found] = _begin_alike(above, below, position, found)
    return touches


def _is_successor(numbers: pa.Array, others: pa.Array) -> npt.NDArray[np.bool_]:
    """Whether the other value is the next integer; False for nulls. The successor of the largest integer would wrap to
    the smallest one, which cannot follow in sorted spans."""
    if numbers.null_count or others.null_count:
        are_valid = np.asarray(pc.and_(numbers.is_valid(), others.is_valid()))
        return are_valid & _is_successor(numbers.fill_null(0), others.fill_null(0))
    first = np.asarray(numbers).astype(np.int64)
    is_next: npt.NDArray[np.bool_] = np.asarray(others).astype(np.int64) - first == 1
    return is_next


def _begin_alike(
    cuts: CutArray, others: CutArray, column_count: int, indices: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """For each index, whether the first columns of both cuts are bound to the same values. Null equals null."""
    alike = np.ones(len(indices), np.bool_)
    chosen = pa.array(indices)
    for column, other in zip(cuts.columns[:column_count], others.columns[:column_count], strict=True):
        values, other_values = column.take(chosen), other.take(chosen)
        both_null = pc.and_(values.is_null(), other_values.is_null())
        alike &= np.asarray(pc.or_kleene(both_null, pc.equal(values, other_values)).fill_null(False))
    return alike
