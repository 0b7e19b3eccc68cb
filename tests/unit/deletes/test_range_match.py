"""Range deletes applied to rows of files, for cases that the generated tables of the property tests are too small
for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from pyiceberg.types import DateType, DoubleType, FloatType, LongType, PrimitiveType, StringType, TimestampType

from tableformat.deletes.matching.range_match import deleted_mask, deleted_runs
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge, span_of_bounds, spans_of_prefixes
from tableformat.errors import SchemaMismatchError
from tableformat.keys.families import arrow_type_of
from tableformat.keys.key_columns import KeyColumns

KEY = KeyColumns((1, 2), ("s", "n"), (StringType(), LongType()))


def mask_of_runs(runs: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], row_count: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros(row_count, np.bool_)
    for start, end in zip(*runs, strict=True):
        mask[start:end] = True
    return mask


@pytest.mark.parametrize("number_range", [1_000, 1 << 62], ids=["dense", "wide"])
def test_unsorted_and_sorted_rows_agree_over_many_batches(number_range: int) -> None:
    """RD-1: more rows than a batch, enough spans for the bucket table, bounds crowded into few buckets."""
    random = np.random.default_rng(7)
    row_count = 150_000
    texts = np.array([f"customer-account-{number:04d}" for number in range(300)], dtype=object)
    rows = pa.table(
        {
            "s": pa.array(texts[random.integers(0, 300, row_count)], pa.large_string()),
            "n": random.integers(-number_range, number_range, row_count),
        }
    )
    ordered = rows.sort_by([("s", "ascending"), ("n", "ascending")])
    bounds = [
        span_of_bounds(KEY, (str(texts[index]), int(low)), (str(texts[index + reach]), int(high)))
        for index, reach, low, high in zip(
            random.integers(0, 290, 120),
            random.integers(1, 3, 120),
            random.integers(-number_range, number_range, 120),
            random.integers(-number_range, number_range, 120),
            strict=True,
        )
    ]
    for spans in (sort_and_merge(SpanArray.concat(bounds)), spans_of_prefixes(KEY, rows.slice(0, 500)), bounds[0]):
        mask = deleted_mask(ordered.columns, spans)
        assert mask.any()
        assert not mask.all()
        assert np.array_equal(mask_of_runs(deleted_runs(ordered.columns, spans), row_count), mask)
        shuffle = random.permutation(row_count)
        assert np.array_equal(deleted_mask(ordered.take(pa.array(shuffle)).columns, spans), mask[shuffle])


def test_trailing_zero_bytes_are_significant() -> None:
    """RD-4."""
    key = KeyColumns((1,), ("s",), (StringType(),))
    rows = pa.array(["a", "a\0", "a\0\0", "a\0b", "b"])
    assert deleted_mask([rows], spans_of_prefixes(key, pa.table({"s": ["a\0"]}))).tolist() == [
        False, True, False, False, False,
    ]  # fmt: skip


def test_dates_are_compared_with_promoted_timestamps() -> None:
    """RD-4, DA-6: a file from before date became timestamp holds dates."""
    import datetime as dt

    key = KeyColumns((1,), ("t",), (TimestampType(),))
    spans = span_of_bounds(key, (dt.datetime(1969, 12, 31, 12),), (dt.datetime(1970, 1, 2),))
    rows = pa.array([-1, 0, 1], pa.int32()).view(pa.date32())
    assert str(DateType()) == "date"
    assert deleted_mask([rows], spans).tolist() == [False, True, False]
    starts, ends = deleted_runs([rows], spans)
    assert (starts.tolist(), ends.tolist()) == ([1], [2])


def test_dictionary_with_null_indices_and_null_values() -> None:
    """RD-4, DA-4: both are null."""
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 2], pa.int8()), pa.array(["a", None, "b"]))
    spans = span_of_bounds(KEY, (None,), ("b",))
    assert deleted_mask([column, None], spans).tolist() == [True, True, True, False]


def test_incompatible_column_type_is_rejected() -> None:
    with pytest.raises(SchemaMismatchError):
        deleted_mask([pa.array(["a"]), pa.array(["1"])], span_of_bounds(KEY, ("a", 1), ("b", 2)))


def test_null_is_distinguished_from_zero() -> None:
    """RD-4: in rows of any order, and in sorted ones."""
    key = KeyColumns((1,), ("n",), (LongType(),))
    spans = spans_of_prefixes(key, pa.table({"n": [0, 7]}))
    rows = pa.array([7, None, 0, None, 3], pa.int64())
    assert deleted_mask([rows], spans).tolist() == [True, False, True, False, False]
    assert deleted_mask([rows.fill_null(0)], spans).tolist() == [True, True, True, True, False]
    of_null = spans_of_prefixes(key, pa.table({"n": pa.array([None], pa.int64())}))
    assert not deleted_mask([rows.fill_null(0)], of_null).any()
    in_order = pa.array([None, None, 0, 3, 7], pa.int64())
    for column, deletes, runs in (
        (in_order, spans, [(2, 3), (4, 5)]),
        (in_order, of_null, [(0, 2)]),
        (in_order.fill_null(0), spans, [(0, 3), (4, 5)]),
        (in_order.fill_null(0), of_null, []),
    ):
        assert list(zip(*deleted_runs([column], deletes), strict=True)) == runs


def test_values_under_a_null_are_ignored() -> None:
    """RD-4: readers leave anything there."""
    key = KeyColumns((1,), ("n",), (LongType(),))
    rows = pa.array(np.array([9, 3, 7, 0, 3]), mask=np.array([True, True, True, False, False]))
    of_null = spans_of_prefixes(key, pa.table({"n": pa.array(np.array([5]), mask=np.array([True]))}))
    for spans, runs in (
        (of_null, [(0, 3)]),
        (spans_of_prefixes(key, pa.table({"n": [3, 9]})), [(4, 5)]),
        (span_of_bounds(key, (None,), (3,)), [(0, 4)]),
    ):
        assert list(zip(*deleted_runs([rows], spans), strict=True)) == runs
        assert deleted_mask([rows], spans).tolist() == mask_of_runs(deleted_runs([rows], spans), 5).tolist()


def test_later_columns_are_sorted_only_within_equal_prefixes() -> None:
    """RD-1: the first and the last rows of a file are as little the whole column as those between."""
    key = KeyColumns((1, 2), ("a", "b"), (LongType(), LongType()))
    rows = [pa.array([1, 1, 2, 2, 3, 3], pa.int64()), pa.array([5, 9, 1, 7, 0, 2], pa.int64())]
    for place, prefix in enumerate(zip(*(column.to_pylist() for column in rows), strict=True)):
        spans = spans_of_prefixes(key, pa.table({"a": [prefix[0]], "b": [prefix[1]]}))
        assert list(zip(*deleted_runs(rows, spans), strict=True)) == [(place, place + 1)]


@pytest.mark.parametrize("key_type", [DoubleType(), FloatType()], ids=str)
def test_float_keys_are_searched_by_value(key_type: PrimitiveType) -> None:
    """RD-4."""
    key = KeyColumns((1,), ("x",), (key_type,))
    rows = pa.array([-7.5, -1.0, 0.0, 0.5, 3.0], arrow_type_of(key_type))
    for span, runs in ((((-1.0,), (0.5,)), [(1, 3)]), ((None, (-1.0,)), [(0, 1)]), (((0.25,), None), [(3, 5)])):
        assert list(zip(*deleted_runs([rows], span_of_bounds(key, *span)), strict=True)) == runs
