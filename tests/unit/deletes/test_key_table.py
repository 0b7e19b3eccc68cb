"""Keys that are looked up by the hash of all their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.types import (
    BinaryType,
    DateType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
)

from tableformat.deletes.matching import key_hashes
from tableformat.deletes.matching.comparable_values import comparable
from tableformat.deletes.matching.key_hashes import KeyWords
from tableformat.deletes.matching.key_table import KeyTable
from tableformat.keys.families import arrow_type_of

INT64 = np.iinfo(np.int64)


@pytest.fixture(params=[False, True], ids=["text as it comes", "text as a dictionary"], autouse=True)
def _is_coded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that repeats becomes a dictionary in long columns; here in all or in none."""
    monkeypatch.setattr(key_hashes, "_SAMPLE_ROWS", 0 if request.param else 1 << 40)


def column(values: Sequence[object], kind: PrimitiveType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, arrow_type_of(kind))])


def table_of(types: Sequence[PrimitiveType], *columns: Sequence[object]) -> KeyTable:
    values = [comparable(column(each, kind), kind) for each, kind in zip(columns, types, strict=True)]
    return KeyTable.of(values, types)[0]


def test_key_table_has_distinct_keys_and_row_indices() -> None:
    """DA-4: null is equal to null."""
    values = [7, None, 7, 3, None]
    table, examples, keys = KeyTable.of([column(values, LongType())], [LongType()])
    assert len(table) == 3
    assert [values[examples[key]] for key in keys.tolist()] == values
    rows, found = table.find([column([3, 4, None, 7], LongType())])
    assert (rows.tolist(), [values[examples[key]] for key in found.tolist()]) == ([0, 2, 3], [3, None, 7])


@pytest.mark.parametrize("clash", [0, (1 << 64) - 1], ids=["all bits clear", "all bits set"])
def test_keys_with_equal_hashes_are_distinguished(monkeypatch: pytest.MonkeyPatch, clash: int) -> None:
    monkeypatch.setattr(KeyWords, "hashes", lambda _, rows: np.full(rows.stop - rows.start, clash, np.uint64))
    values = [5, 1, None, 5, 9]
    table, examples, keys = KeyTable.of([column(values, LongType())], [LongType()])
    assert len(table) == 4
    assert [values[examples[key]] for key in keys.tolist()] == values
    rows, found = table.find([column([9, 2, None, 1, 5], LongType())])
    assert (rows.tolist(), [values[examples[key]] for key in found.tolist()]) == ([0, 2, 3, 4], [9, None, 1, 5])
    for keys_, asked, want in (([0], [None, 0], [1]), ([None], [0], []), ([None, 0], [0, 0], [0, 1]), ([0], [0], [0])):
        assert table_of([LongType()], keys_).find([column(asked, LongType())])[0].tolist() == want
    assert table_of([LongType()], [None]).find([column([0, None], LongType())])[0].tolist() == [1]


def test_long_values_with_equal_beginnings_are_distinguished() -> None:
    long = "x" * 100
    table = table_of([StringType()], [long + "a", long, "", "é" * 9])
    rows = [long + "b", long + "a", long + "a\0", long, long[:-1], "", "\0", "é" * 9, "é" * 8]
    assert table.find([column(rows, StringType())])[0].tolist() == [1, 3, 5, 7]
    assert table_of([BinaryType()], [b"a"]).find([column([b"x" * 1000, b"a"], BinaryType())])[0].tolist() == [1]


@pytest.mark.parametrize(
    ("kind", "values", "stored"),
    [
        (LongType(), [INT64.min, 0, INT64.max], pa.int64()),
        (LongType(), [-(2**31), 0, 2**31 - 1], pa.int32()),
        (TimestampType(), [-1_000, 0, 1], pa.timestamp("us")),
        (DateType(), [-1, 0, 1], pa.date32()),
    ],
)
def test_integers_match_across_promoted_types(kind, values, stored) -> None:
    """DA-6"""
    numbers = pa.array(values, pa.int32() if stored.bit_width == 32 else pa.int64()).cast(stored)
    table = table_of([kind], numbers.cast(arrow_type_of(kind)))
    assert table.find([pa.chunked_array([numbers])])[0].tolist() == [0, 1, 2]


def test_low_cardinality_columns_are_found() -> None:
    numbers = np.arange(20_000)
    names = [f"partner-{number // 100:03}" if number % 7 else None for number in numbers.tolist()]
    rows = [column(names, StringType()), column(numbers.tolist(), LongType())]
    table, examples, _ = KeyTable.of([each.slice(5_000, 10_000) for each in rows], [StringType(), LongType()])
    assert examples.tolist() == list(range(10_000))
    found, keys = table.find(rows)
    assert found.tolist() == list(range(5_000, 15_000))
    assert keys.tolist() == list(range(10_000))


def test_empty_keys_or_rows_find_nothing() -> None:
    none = table_of([IntegerType()], [])
    assert [found.tolist() for found in none.find([column([1, None], IntegerType())])] == [[], []]
    one = table_of([StringType()], ["a"])
    for rows in (column([], StringType()), pa.chunked_array([], pa.dictionary(pa.int32(), pa.string()))):
        assert [found.tolist() for found in one.find([rows])] == [[], []]
