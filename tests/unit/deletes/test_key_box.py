"""Dense keys that are looked up by position give the same result as keys that are looked up by hash."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import (
    DateType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from tableformat.deletes.matching.comparable_values import comparable
from tableformat.deletes.matching.key_box import KeyBox
from tableformat.deletes.matching.key_index import index_keys
from tableformat.deletes.matching.key_table import KeyTable
from tableformat.keys.families import arrow_type_of

INT64 = np.iinfo(np.int64)
KINDS: list[PrimitiveType] = [
    IntegerType(),
    LongType(),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    TimestampNanoType(),
]


def column(values: Sequence[int | None], kind: PrimitiveType) -> pa.ChunkedArray:
    target = arrow_type_of(kind)
    return pa.chunked_array([pa.array(values, pa.int32() if target.bit_width == 32 else pa.int64()).view(target)])


def box_of(values: Sequence[int | None], kind: PrimitiveType = LongType()) -> KeyBox:  # noqa: B008 - immutable
    found = KeyBox.of([column(values, kind)], [kind])
    assert found is not None
    return found[0]


Key = tuple[int | None, int | None]
NUMBERS = st.none() | st.integers(0, 6)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30)
TWO_KINDS = st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS))


@given(keys=ROWS.filter(bool), rows=ROWS, kinds=TWO_KINDS, cut=st.integers(0, 30))
def test_key_box_lookup_agrees_with_hash_lookup(
    keys: list[Key], rows: list[Key], kinds: tuple[PrimitiveType, PrimitiveType], cut: int
) -> None:
    """DA-4."""
    made = KeyBox.of([column([key[index] for key in keys], kind) for index, kind in enumerate(kinds)], kinds)
    assert made is not None
    box, examples, numbers = made
    assert examples.tolist() == sorted(examples.tolist())
    assert len(box) == len(examples) == len(set(keys))
    assert [keys[row] for row in examples[numbers]] == keys
    asked = []
    for index, kind in enumerate(kinds):
        whole = column([row[index] for row in rows], kind).chunk(0)
        asked.append(pa.chunked_array([whole.slice(0, cut), whole.slice(cut)]))
    as_compared = [comparable(each, kind) for each, kind in zip(asked, kinds, strict=True)]
    for found, of_keys in (box.find(asked), box.find_comparable(as_compared)):
        assert found.tolist() == [number for number, row in enumerate(rows) if row in keys]
        assert [keys[row] for row in examples[of_keys]] == [rows[row] for row in found]


@pytest.mark.parametrize("lowest", [INT64.min, -30, INT64.max - 5])
def test_integers_at_type_limits(lowest: int) -> None:
    box = box_of([lowest + 1, lowest + 3])
    rows = [INT64.min, INT64.max, lowest, lowest + 1, lowest + 2, lowest + 3, lowest + 4, 0, None]
    assert box.find([column(rows, LongType())])[0].tolist() == [3, 5]


def test_null_matches_only_if_a_key_contains_null() -> None:
    """DA-4."""
    rows = [column([None, 0, 1, None], LongType())]
    assert [found.tolist() for found in box_of([None, 1]).find(rows)] == [[0, 2, 3], [0, 1, 0]]
    assert box_of([0, 1]).find(rows)[0].tolist() == [1, 2]
    assert box_of([None]).find(rows)[0].tolist() == [0, 3]


def test_rows_of_narrower_type_or_dictionary_match() -> None:
    """DA-6."""
    narrow = pa.chunked_array([pa.array([5, 2, None, 2], pa.int32())])
    for rows in (narrow, narrow.cast(pa.int64()).dictionary_encode()):
        assert box_of([2, 3]).find([rows])[0].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("values", "kind"),
    [([0, 1 << 40], LongType()), ([INT64.min, INT64.max], LongType()), (["a"], StringType()), ([], LongType())],
)
def test_sparse_or_non_integer_keys_use_hash_lookup(values: list[object], kind: PrimitiveType) -> None:
    """Far apart, no numbers, none at all."""
    columns = [pa.chunked_array([pa.array(values, arrow_type_of(kind))])]
    assert KeyBox.of(columns, [kind]) is None
    index, examples, _ = index_keys(columns, [kind])
    assert isinstance(index, KeyTable)
    assert index.find(columns)[0].tolist() == examples.tolist() == list(range(len(values)))
