"""A first pass over a column that never misses a known value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tableformat.deletes.matching.hash_prefilter import HashPrefilter

INT64 = np.iinfo(np.int64)


def rows_with(column: pa.ChunkedArray, known: list[object]) -> set[int]:
    """The offsets of the rows that hold a known value, by comparing each."""
    return {row for row, value in enumerate(column.to_pylist()) if value in known}


@pytest.mark.parametrize(
    "arrow_type", [pa.int32(), pa.int64(), pa.date32(), pa.time64("us"), pa.timestamp("us"), pa.timestamp("us", "UTC")]
)
def test_no_known_value_is_missed_in_any_integer_type(arrow_type: pa.DataType) -> None:
    numbers = pa.array([-5, 0, 3, None, 7, 70_000, 3]).cast(pa.int32() if arrow_type.bit_width == 32 else pa.int64())
    if pa.types.is_time(arrow_type):
        numbers = pa.compute.abs(numbers)
    values = numbers.cast(arrow_type)
    known = values.take(pa.array([2, 5]))
    prefilter = HashPrefilter.of(known)
    assert prefilter is not None
    assert rows_with(pa.chunked_array([values]), known.to_pylist()) <= set(
        prefilter.possible_rows(pa.chunked_array([values])).tolist()
    )


def test_rows_of_sliced_chunks_are_counted_from_the_first_one() -> None:
    chunks = [pa.array([9, 9, 1, 2, 9]).slice(1, 3), pa.array([], pa.int64()), pa.array([None, 1, 3, 2]).slice(1)]
    column = pa.chunked_array(chunks)
    prefilter = HashPrefilter.of(pa.array([1, 2]))
    assert prefilter is not None
    assert set(prefilter.possible_rows(column).tolist()) >= {1, 2, 3, 5}


def test_null_is_possible_where_it_is_known() -> None:
    """DA-4"""
    column = pa.chunked_array([pa.array([INT64.min, None, 5, INT64.max])])
    prefilter = HashPrefilter.of(pa.array([INT64.max, None, INT64.min]))
    assert prefilter is not None
    assert set(prefilter.possible_rows(column).tolist()) >= {0, 1, 3}


def test_most_rows_are_ruled_out_and_come_in_order() -> None:
    random = np.random.default_rng(1)
    known = pa.array(random.integers(INT64.min, INT64.max, 1_000))
    values = random.integers(INT64.min, INT64.max, 200_000)
    values[::1_000] = known.to_numpy()[:200]
    prefilter = HashPrefilter.of(known)
    assert prefilter is not None
    rows = prefilter.possible_rows(pa.chunked_array([pa.array(values)]))
    assert np.all(np.diff(rows) > 0)
    assert set(range(0, 200_000, 1_000)) <= set(rows.tolist())
    assert len(rows) < 20_000


def test_no_known_values_rule_out_every_row() -> None:
    prefilter = HashPrefilter.of(pa.array([], pa.int64()))
    assert prefilter is not None
    assert prefilter.possible_rows(pa.chunked_array([pa.array([1, 2])])).tolist() == []


@pytest.mark.parametrize("known", [pa.array(["a"]), pa.array([1.5]), pa.array([True]), pa.array([1], pa.int8())])
def test_other_types_have_no_sieve(known: pa.Array) -> None:
    assert HashPrefilter.of(known) is None
