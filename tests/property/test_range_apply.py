"""Rows under spans: binary search, trie and a plain loop agree on typed rows with nulls, in every physical form."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from key_cases import Cut, arrow_column, comparable, comparable_row, is_above, keyed_cases, span_array
from pyiceberg.types import DoubleType, LongType, PrimitiveType, StringType, UUIDType

from tableformat.deletes.codecs.range_file import spans_from_parquet, spans_to_parquet_table, write_span_table
from tableformat.deletes.matching.range_match import deleted_mask, deleted_runs
from tableformat.deletes.spans.bounds import entry_bounds, key_bounds
from tableformat.deletes.spans.coverage import Coverage, classify
from tableformat.deletes.spans.skyline import skyline
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.deletes.spans.touching import SearchableSpans
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.column_bounds import to_bound, truncate_lower, truncate_upper
from tableformat.metadata.content_file import DataFile
from tableformat.parquet.parquet_file import plain_parquet

Case = tuple[KeyColumns, list[tuple[Any, ...]], list[tuple[Cut, Cut]]]


def covered(rows: list[tuple[Any, ...]], pairs: list[tuple[Cut, Cut]]) -> list[bool]:
    return [any(is_above(row, lower) and not is_above(row, upper) for lower, upper in pairs) for row in rows]


def mask_of_runs(runs: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], row_count: int) -> list[bool]:
    mask = [False] * row_count
    for start, end in zip(*runs, strict=True):
        assert start < end
        mask[start:end] = [True] * (end - start)
    return mask


def in_form(column: pa.Array, key_type: PrimitiveType, form: int) -> pa.Array | pa.ChunkedArray | None:  # noqa: PLR0911 (one a form)
    """The same values as readers may deliver them."""
    match form:
        case 1:
            return column.dictionary_encode()
        case 2:
            middle = len(column) // 2
            return pa.chunked_array([column.slice(0, middle), column.slice(middle)])
        case 3:
            # A slice of a longer array, whose buffers begin elsewhere.
            return pa.concat_arrays([column, column]).slice(len(column))
        case 4 if column.null_count == len(column):
            return None
        case 5 if isinstance(key_type, StringType):
            return column.cast(pa.string())
        case 6 if isinstance(key_type, StringType):
            return column.cast(pa.string_view())
        case 7 if isinstance(key_type, LongType) and all(abs(v) < 1 << 31 for v in column.drop_null().to_pylist()):
            return column.cast(pa.int32())
        case 8 if isinstance(key_type, DoubleType) and column.cast(pa.float32(), safe=False).cast(pa.float64()).equals(
            column
        ):
            return column.cast(pa.float32())
        case 9 if isinstance(key_type, UUIDType):
            return pa.ExtensionArray.from_storage(pa.uuid(), column)
        case _:
            return column


def columns_of(
    key: KeyColumns, rows: list[tuple[Any, ...]], forms: list[int]
) -> list[pa.Array | pa.ChunkedArray | None]:
    columns = []
    for position, key_type in enumerate(key.types):
        column = arrow_column([row[position] for row in rows], key_type)
        columns.append(in_form(column, key_type, forms[position]))
    return columns


form_choices = st.lists(st.integers(0, 9), min_size=3, max_size=3)


@settings(max_examples=examples(1.5), deadline=None)
@given(keyed_cases(), form_choices)
def test_span_mask_and_runs_agree_with_a_plain_loop(case: Case, forms: list[int]) -> None:
    """RD-1: parity over sorted disjoint boundaries, against each row compared with each span."""
    key, rows, pairs = case
    spans = sort_and_merge(span_array(key, pairs))
    mask = deleted_mask(columns_of(key, rows, forms), spans, row_count=len(rows))
    assert mask.tolist() == covered(rows, pairs)
    ordered = sorted(rows, key=comparable_row)
    runs = deleted_runs(columns_of(key, ordered, forms), spans, row_count=len(rows))
    assert mask_of_runs(runs, len(rows)) == covered(ordered, pairs)


@settings(max_examples=examples(1), deadline=None)
@given(keyed_cases(), st.lists(st.integers(1, 5), min_size=6, max_size=6), st.integers(0, 5))
def test_newer_fragments_delete_like_their_spans(case: Case, numbers: list[int], file_number: int) -> None:
    """RD-2, RD-9: spans of many commits, cut into a skyline, delete what the newer ones among them delete."""
    key, rows, pairs = case
    fragments = skyline(span_array(key, pairs, numbers[: len(pairs)]))
    assert fragments.sequence_numbers is not None
    newer = fragments.take(np.flatnonzero(fragments.sequence_numbers > file_number))
    expected = covered(rows, [pair for pair, number in zip(pairs, numbers, strict=False) if number > file_number])
    assert deleted_mask(columns_of(key, rows, [0, 0, 0]), newer, row_count=len(rows)).tolist() == expected


@st.composite
def described_files(draw: st.DrawFn) -> tuple[Case, DataFile]:
    """A case whose rows are a data file, with the parts of a manifest entry that some writer would write."""
    key, rows, pairs = draw(keyed_cases())
    counts, nulls, nans, lowers, uppers = {}, {}, {}, {}, {}
    for position, (field_id, key_type) in enumerate(zip(key.field_ids, key.types, strict=True)):
        values = [row[position] for row in rows]
        known = sorted((value for value in values if value is not None and value == value), key=comparable)  # noqa: PLR0124 (NaN)
        has = {name: draw(st.integers(0, 9)) > 0 for name in ("counts", "nulls", "nans", "lower", "upper")}
        if has["counts"]:
            counts[field_id] = len(values)
        if has["nulls"]:
            nulls[field_id] = values.count(None)
        if has["nans"]:
            nans[field_id] = sum(isinstance(value, float) and value != value for value in values)  # noqa: PLR0124 (NaN)
        if known and has["lower"]:
            lower = known[0]
            lowers[field_id] = to_bound(
                truncate_lower(lower, 2) if isinstance(lower, str) and draw(st.booleans()) else lower, key_type
            )
        if known and has["upper"]:
            upper = known[-1]
            rounded = truncate_upper(upper, 2) if isinstance(upper, str) and draw(st.booleans()) else upper
            if rounded is not None:
                uppers[field_id] = to_bound(rounded, key_type)
    data = DataFile(
        file_path="data/1.parquet",
        file_format="PARQUET",
        spec_id=0,
        record_count=len(rows),
        file_size_bytes=1,
        sequence_number=3,
        value_counts=counts,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=lowers,
        upper_bounds=uppers,
    )
    return (key, rows, pairs), data


@settings(max_examples=examples(1.5), deadline=None)
@given(described_files(), st.lists(st.integers(1, 5), min_size=6, max_size=6))
def test_bounds_pruning_does_not_change_deleted_rows(described: tuple[Case, DataFile], numbers: list[int]) -> None:
    """RD-2, RD-10, RD-12: the verdict and the spans it leaves mean for the rows what all spans mean."""
    (key, rows, pairs), data = described
    fragments = skyline(span_array(key, pairs, numbers[: len(pairs)]))
    coverage, spans = classify(fragments, data)
    expected = covered(rows, [pair for pair, number in zip(pairs, numbers, strict=False) if number > 3])
    if coverage is Coverage.CLEAN:
        assert len(spans) == 0
        assert not any(expected)
    elif coverage is Coverage.COVERED:
        assert all(expected)
    kept = deleted_mask(columns_of(key, rows, [0, 0, 0]), spans, row_count=len(rows)).tolist()
    assert kept == expected
    bounds = key_bounds(data, key)
    for question_count in (1, len(spans) + 1):  # cuts decoded one by one, and all at once
        first, last = SearchableSpans.of(spans, question_count).touching([bounds.lower], [bounds.upper])
        assert (int(first[0]), int(last[0])) == (0, len(spans)) or len(spans) == 0


@settings(max_examples=examples(1), deadline=None)
@given(keyed_cases())
def test_rows_outside_entry_bounds_are_not_deleted(case: Case) -> None:
    """RD-10: a planner may skip a range delete file by the bounds of its manifest entry."""
    key, rows, pairs = case
    spans = sort_and_merge(span_array(key, pairs))
    if len(spans) == 0:
        return
    lower, upper = entry_bounds(spans)
    for row, is_deleted in zip(rows, covered(rows, pairs), strict=True):
        for value, field_id, key_type in zip(row, key.field_ids, key.types, strict=True):
            sort_key = comparable(value)
            is_low = field_id in lower and sort_key < comparable(from_single_value(lower[field_id], key_type))
            is_high = field_id in upper and sort_key > comparable(from_single_value(upper[field_id], key_type))
            assert not (is_deleted and (is_low or is_high))


def from_single_value(bound: bytes, key_type: PrimitiveType) -> Any:
    from pyiceberg.conversions import from_bytes

    value = from_bytes(key_type, bound)
    return struct.unpack("<f", bound)[0] if len(bound) == 4 and isinstance(value, float) else value


@settings(max_examples=examples(0.75), deadline=None)
@given(keyed_cases())
def test_spans_round_trip_through_file_and_pickle(case: Case) -> None:
    """RD-7: what is written is what is read."""
    key, _, pairs = case
    spans = sort_and_merge(span_array(key, pairs))
    sink = io.BytesIO()
    write_span_table(spans_to_parquet_table(spans), sink)
    read = spans_from_parquet(pq.read_table(io.BytesIO(plain_parquet(sink.getvalue()))), "deletes/1.parquet")
    for other in (read, pickle.loads(pickle.dumps(spans))):
        assert isinstance(other, SpanArray)
        assert other.key.field_ids == key.field_ids
        assert other.key.types == key.types
        assert other.lower.encoded.equals(spans.lower.encoded)
        assert other.upper.encoded.equals(spans.upper.encoded)
        assert other.sequence_numbers is None
