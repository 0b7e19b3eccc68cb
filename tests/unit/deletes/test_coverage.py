"""Coverage of data files by range deletes, if other writers omit parts of the manifest entry."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import DoubleType, LongType, PrimitiveType, StringType, UUIDType

from tableformat.deletes.spans.bounds import KeyBounds, key_bounds
from tableformat.deletes.spans.coverage import Coverage, classify, classify_many
from tableformat.deletes.spans.skyline import skyline
from tableformat.deletes.spans.spans import SpanArray, span_of_bounds, spans_of_prefixes
from tableformat.errors import CorruptFileError
from tableformat.keys.encoding import encode_values
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import DataFile

KEY = KeyColumns((1, 2), ("s", "n"), (StringType(), LongType()))
OPEN = KeyBounds(b"", b"\xff")


def data_file(key: KeyColumns = KEY, *, lower: Any = (), upper: Any = (), number: int = 4, **changed: Any) -> DataFile:
    def bounds(values: Any) -> dict[int, bytes]:
        stated = zip(values, key.field_ids, key.types, strict=False)
        return {field_id: to_bound(value, key_type) for value, field_id, key_type in stated if value is not None}

    stated = {
        "value_counts": dict.fromkeys(key.field_ids, 10),
        "null_value_counts": dict.fromkeys(key.field_ids, 0),
        "lower_bounds": bounds(lower),
        "upper_bounds": bounds(upper),
    }
    return DataFile(
        file_path="data/1.parquet",
        file_format="PARQUET",
        spec_id=0,
        record_count=10,
        file_size_bytes=1,
        sequence_number=number,
        **(stated | changed),
    )


def prefixes(*texts: str, number: int = 5) -> SpanArray:
    return skyline(spans_of_prefixes(KEY, pa.table({"s": list(texts)})).with_sequence_number(number))


def key_of(key_type: PrimitiveType) -> KeyColumns:
    return KeyColumns((1,), ("k",), (key_type,))


def test_entry_without_column_statistics_is_unbounded() -> None:
    """RD-10."""
    assert key_bounds(data_file(lower_bounds=None, upper_bounds=None), KEY) == OPEN
    nulls = data_file(lower=("a", 1), upper=("b", 7), value_counts=None, null_value_counts={1: 10, 2: 0})
    assert key_bounds(nulls, KEY) == KeyBounds(
        encode_values((None, 1), KEY.types), encode_values(("b", 7), KEY.types) + b"\xff"
    )


def test_a_side_ends_at_the_first_unknown_column() -> None:
    """RD-10: a missing lower bound does not spoil the upper side."""
    bounds = key_bounds(data_file(lower=(None, 1), upper=("b", 7)), KEY)
    assert bounds == KeyBounds(b"", encode_values(("b", 7), KEY.types) + b"\xff")


def test_unknown_null_count_unbounds_that_and_later_columns() -> None:
    """RD-10."""
    known = {"lower": ("a", 1), "upper": ("b", 7)}
    assert key_bounds(data_file(**known, null_value_counts=None), KEY) == OPEN
    assert key_bounds(data_file(**known, null_value_counts={1: 0}), KEY) == KeyBounds(
        encode_values(("a",), KEY.types), encode_values(("b",), KEY.types) + b"\xff"
    )


def test_nulls_extend_the_lower_bound() -> None:
    """RD-10: nulls sort first."""
    some = key_bounds(data_file(lower=("a", 1), upper=("b", 7), null_value_counts={1: 3, 2: 0}), KEY)
    assert some == KeyBounds(encode_values((None, 1), KEY.types), encode_values(("b", 7), KEY.types) + b"\xff")
    every = key_bounds(data_file(lower=(None, 1), upper=(None, 7), null_value_counts={1: 10, 2: 0}), KEY)
    assert every == KeyBounds(encode_values((None, 1), KEY.types), encode_values((None, 7), KEY.types) + b"\xff")


def test_file_without_a_key_column_is_never_clean() -> None:
    """RD-10, DA-6: it may read as null or as a default, so rows decide."""
    old = data_file(lower=("a",), upper=("b",), value_counts={1: 10}, null_value_counts={1: 0})
    spans = skyline(span_of_bounds(KEY, ("b", 5), ("b", 6)).with_sequence_number(5))
    assert classify(spans, old)[0] is Coverage.PARTIAL


@pytest.mark.parametrize(
    ("nan_counts", "upper_is_known", "lower_is_known"),
    [({1: 0}, True, True), ({1: 2}, False, True), (None, False, False)],
)
def test_float_bounds_need_a_nan_count(
    nan_counts: dict[int, int] | None, upper_is_known: bool, lower_is_known: bool
) -> None:
    """RD-10: NaN is above every bound; unknown NaN may have spoilt both."""
    key = key_of(DoubleType())
    bounds = key_bounds(data_file(key, lower=(-0.0,), upper=(0.0,), nan_value_counts=nan_counts), key)
    zero = encode_values((0.0,), key.types)
    assert bounds == KeyBounds(zero if lower_is_known else b"", zero + b"\xff" if upper_is_known else b"\xff")


def test_uuid_bounds_are_used_only_if_signed_and_unsigned_order_agree() -> None:
    """RD-10: Iceberg's Java library merges the bounds of row groups in signed order. For a file with 10.. to 90.. in
    one row group and a0.. to b0.. in another, its bounds are a0.. to b0.., or 90.. to 7f... No row of the file may come
    back, and none may be lost."""
    key = key_of(UUIDType())
    low, high = (bytes([first]) + bytes(15) for first in (0x10, 0xA0))
    for lower, upper, spans, verdict in (
        (high, bytes([0xB0]) + bytes(15), (None, (bytes([0x50]) + bytes(15),)), Coverage.PARTIAL),
        (high, bytes([0x7F]) + bytes(15), ((bytes([0x80]) + bytes(15),), None), Coverage.PARTIAL),
        (bytes([0x90]) + bytes(15), high, ((bytes([0x85]) + bytes(15),), None), Coverage.PARTIAL),
        (low, high, (None, (bytes([0x05]) + bytes(15),)), Coverage.CLEAN),
        (low, high, ((bytes([0xA1]) + bytes(15),), None), Coverage.CLEAN),
        (low, high, ((bytes([0x05]) + bytes(15),), (bytes([0xA1]) + bytes(15),)), Coverage.COVERED),
        # The low half was also chosen in signed order, among the values with the same high half.
        (low, high, (None, (bytes([0x10]) + bytes(14) + b"\1",)), Coverage.PARTIAL),
    ):
        data = data_file(key, lower_bounds={1: lower}, upper_bounds={1: upper})
        fragments = skyline(span_of_bounds(key, *spans).with_sequence_number(5))
        assert classify(fragments, data)[0] is verdict
        assert [found[0] for found in classify_many(fragments, [data, data])] == [verdict] * 2
    whole = data_file(key, lower_bounds={1: high}, upper_bounds={1: high}, split_offsets=(4,))
    fragments = skyline(span_of_bounds(key, None, (low,)).with_sequence_number(5))
    assert classify(fragments, whole)[0] is Coverage.CLEAN


def test_bounds_written_before_promotion_are_used() -> None:
    """RD-10: 4 bytes of an int under a long column."""
    key = key_of(LongType())
    stored = {"lower_bounds": {1: struct.pack("<i", -1)}, "upper_bounds": {1: struct.pack("<i", 5)}}
    assert key_bounds(data_file(key, **stored), key) == KeyBounds(
        encode_values((-1,), key.types), encode_values((5,), key.types) + b"\xff"
    )


def test_invalid_bound_error_names_the_file() -> None:
    key = key_of(LongType())
    with pytest.raises(CorruptFileError, match=r"data/1.parquet: the upper bound of field id 1 .* 3 bytes for long"):
        key_bounds(data_file(key, lower=(1,), upper_bounds={1: b"abc"}), key)


def test_truncated_string_bounds_are_widened() -> None:
    """RD-10: "ab" .. "ac" may hold "abz": the prefix "abz" is not clean, and ["ab", "ac") does not cover."""
    wide = data_file(lower=("ab",), upper=("ac",))
    assert classify(prefixes("abz"), wide)[0] is Coverage.PARTIAL
    spans = skyline(span_of_bounds(KEY, ("ab",), ("ac",)).with_sequence_number(5))
    assert classify(spans, wide)[0] is Coverage.PARTIAL


def test_prefix_delete_covers_a_file_of_that_prefix_only() -> None:
    """RD-10: the message replaced by a later one is not opened."""
    of_one = data_file(lower=("a", 1), upper=("a", 15))
    coverage, spans = classify(prefixes("a"), of_one)
    assert coverage is Coverage.COVERED
    assert spans.lower.encoded.to_pylist() == [encode_values(("a",), KEY.types)]
    assert classify(prefixes("a"), data_file(lower=("a", 1), upper=("b", 1)))[0] is Coverage.PARTIAL
    assert classify(prefixes("b"), of_one)[0] is Coverage.CLEAN


def test_fragment_after_the_last_key_does_not_overlap_the_file() -> None:
    """RD-1, RD-12: what a prefix delete leaves of an older and wider span begins after its prefix."""
    older = span_of_bounds(KEY, ("b",), ("d",)).with_sequence_number(5)
    newer = spans_of_prefixes(KEY, pa.table({"s": ["b"]})).with_sequence_number(7)
    fragments = skyline(SpanArray.concat([older, newer]))
    coverage, spans = classify(fragments, data_file(lower=("b",), upper=("b",), number=6))
    assert coverage is Coverage.COVERED
    assert spans.upper.after.tolist() == [True]
    beyond = fragments.slice(1, 2)
    assert classify(beyond, data_file(lower=("b",), upper=("b",), number=4))[0] is Coverage.CLEAN


def test_row_written_with_its_range_delete_stays_visible() -> None:
    """RD-2: an equal sequence number deletes nothing."""
    coverage, spans = classify(prefixes("a", number=4), data_file(lower=("a", 1), upper=("a", 2), number=4))
    assert coverage is Coverage.CLEAN
    assert len(spans) == 0


def test_older_fragment_between_newer_ones_is_excluded() -> None:
    """RD-2: a file with number 6 keeps its rows between the spans with newer numbers, because only number 5 covers
    them; the spans on both sides are not joined."""
    key = KeyColumns((2,), ("n",), (LongType(),))
    spans = [span_of_bounds(key, (lower,), (upper,)) for lower, upper in ((0, 3), (3, 5), (5, 8))]
    numbered = [span.with_sequence_number(number) for span, number in zip(spans, (9, 5, 8), strict=True)]
    fragments = skyline(SpanArray.concat(numbered))
    coverage, newer = classify(fragments, data_file(key, lower=(0,), upper=(7,), number=6))
    assert coverage is Coverage.PARTIAL
    assert [cuts.columns[0].to_pylist() for cuts in (newer.lower, newer.upper)] == [[0, 5], [3, 8]]
    assert newer.sequence_numbers is not None
    assert newer.sequence_numbers.tolist() == [9, 8]
