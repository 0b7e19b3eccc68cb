"""Equality deletes compared with a loop over rows."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from contextlib import nullcontext
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.deletes.matching import key_hashes
from tableformat.deletes.matching.comparable_values import comparable
from tableformat.deletes.matching.equality import EqualityKeys
from tableformat.deletes.matching.range_match import deleted_runs
from tableformat.keys.encoding import encode_rows
from tableformat.keys.families import KeyFamily, arrow_type_of, family_of

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]

# Few values of each type, so that rows and keys often coincide.
VALUES: dict[PrimitiveType, list[Any]] = {
    BooleanType(): [True, False],
    IntegerType(): [-1, 0, 2**31 - 1],
    LongType(): [-(2**63), 0, 7, 2**63 - 1],
    DateType(): [dt.date(1969, 12, 31), dt.date(2020, 1, 1)],
    TimeType(): [dt.time(0, 0), dt.time(23, 59, 59, 999999)],
    TimestamptzType(): [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, 1, tzinfo=dt.UTC)],
    FloatType(): [0.0, -0.0, 1.5, math.nan, math.inf],
    DoubleType(): [0.0, -0.0, 0.1, math.nan, NEGATIVE_NAN, -math.inf],
    DecimalType(9, 2): [Decimal("0.00"), Decimal("-1.25"), Decimal("9999999.99")],
    DecimalType(38, 0): [Decimal(0), Decimal(10**37), Decimal(-(10**37))],
    StringType(): ["", "a", "a\0", "é", "\U00010000", "\uffff"],
    BinaryType(): [b"", b"\0", b"\0\0", b"\xff"],
    FixedType(3): [b"\0\0\0", b"ab\0"],
    UUIDType(): [uuid.UUID(int=0).bytes, uuid.UUID(int=2**128 - 1).bytes],
}


@st.composite
def cases(
    draw: st.DrawFn,
) -> tuple[list[PrimitiveType], list[tuple[Any, ...]], list[tuple[list[tuple[Any, ...]], int]]]:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    row = st.tuples(*[st.sampled_from([None, *VALUES[kind]]) for kind in types])
    rows = draw(st.lists(row, max_size=30))
    deletes = draw(st.lists(st.tuples(st.lists(row, max_size=6), st.integers(1, 5)), min_size=1, max_size=3))
    return types, rows, deletes


def columns_of(rows: list[tuple[Any, ...]], types: list[PrimitiveType], chunk_size: int = 7) -> list[pa.ChunkedArray]:
    chunks = [rows[start : start + chunk_size] for start in range(0, len(rows), chunk_size)] or [[]]
    return [
        pa.chunked_array([pa.array([row[index] for row in chunk], arrow_type_of(kind)) for chunk in chunks])
        for index, kind in enumerate(types)
    ]


def same(left: Any, right: Any) -> bool:
    """DA-4, DA-5: what equal means, without any encoding."""
    if left is None or right is None:
        return left is None and right is None
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


def keys_of(types: list[PrimitiveType], deletes: list[tuple[list[tuple[Any, ...]], int]]) -> EqualityKeys:
    described = []
    for rows, number in deletes:
        columns = [comparable(column, kind) for column, kind in zip(columns_of(rows, types), types, strict=True)]
        described.append((columns, number))
    return EqualityKeys.collapse(range(1, len(types) + 1), types, described)


@given(cases(), st.integers(0, 6), st.booleans(), st.booleans())
def test_equality_deletes_agree_with_brute_force(case, data_number: int, as_codes: bool, codes_text: bool) -> None:
    """DA-2, DA-4, DA-5: also if text is dictionary-encoded, by the caller or because long columns have few values."""
    with patch.object(key_hashes, "_SAMPLE_ROWS", 0) if codes_text else nullcontext():
        _check_deleted_rows(case, data_number, as_codes)


def _check_deleted_rows(case, data_number: int, as_codes: bool) -> None:
    types, rows, deletes = case
    columns = columns_of(rows, types)
    if as_codes:
        columns = [column.dictionary_encode() for column in columns]
    mask = keys_of(types, deletes).deleted_mask(columns, data_number)
    assert mask.tolist() == [
        any(data_number < number and any(all(map(same, row, key)) for key in keys) for keys, number in deletes)
        for row in rows
    ]


@given(cases(), st.integers(0, 6))
def test_sorted_search_agrees_with_hash_lookup(case, data_number: int) -> None:
    """RD-11: both ways of applying equality deletes mean the same."""
    types, rows, deletes = case
    if not rows or any(family_of(kind) is KeyFamily.FLOAT for kind in types):
        return
    encoded = encode_rows(columns_of(rows, types), types).to_pylist()
    rows = [rows[index] for index in sorted(range(len(rows)), key=encoded.__getitem__)]
    keys = keys_of(types, deletes)
    points = keys.point_spans(keys.field_ids)
    newer = points.take((points.sequence_numbers > data_number).nonzero()[0])
    starts, ends = deleted_runs(columns_of(rows, types), newer)
    found = [index for start, end in zip(starts.tolist(), ends.tolist(), strict=True) for index in range(start, end)]
    assert found == keys.deleted_rows(columns_of(rows, types), data_number).tolist()
