from __future__ import annotations

import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tableformat.write.rows import sorting
from tableformat.write.rows.sorting import follows, is_sorted, order_of_batches, sorting_order


def in_order(*columns: pa.Array) -> list[tuple[object, ...]]:
    order = sorting_order(columns)
    taken = columns if order is None else [column.take(order) for column in columns]
    return list(zip(*(column.to_pylist() for column in taken), strict=True))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["b", "", "a", "a\0"], pa.large_string()), ["", "a", "a\0", "b"]),
        (pa.array(["\U0001f600", "\uffff"], pa.large_string()), ["\uffff", "\U0001f600"]),
        (pa.array([b"\xff", b"\x00", b""], pa.large_binary()), [b"", b"\x00", b"\xff"]),
        (pa.array([b"b\0", b"a\0"], pa.binary(2)), [b"a\0", b"b\0"]),
        (pa.array([uuid.UUID(int=2**127), uuid.UUID(int=1)], pa.uuid()), [uuid.UUID(int=1), uuid.UUID(int=2**127)]),
        (pa.array([Decimal("1.0"), Decimal("-2.0")], pa.decimal128(3, 1)), [Decimal("-2.0"), Decimal("1.0")]),
        (pa.array([True, False]), [False, True]),
        (pa.array([2, None, 1]), [None, 1, 2]),
    ],
)
def test_rd_4_every_key_type_is_in_byte_order_with_nulls_first(column: pa.Array, expected: list[object]) -> None:
    """RD-4."""
    assert [value for (value,) in in_order(column)] == expected


def test_rows_of_equal_keys_stay_as_they_came() -> None:
    key = pa.array([1, 0, 1, 0] * 100)
    order = sorting_order([key])
    assert order is not None
    assert order.to_pylist() == [*range(1, 400, 2), *range(0, 400, 2)]


def test_rows_in_order_are_not_sorted_again() -> None:
    assert sorting_order([pa.array(["a", "a", "b"]), pa.array([1, 1, 0])]) is None
    assert sorting_order([pa.array(["a", "a", "b"]), pa.array([2, 1, 0])]) is not None


@pytest.mark.parametrize("rows_each", [1, sorting._LARGE_BATCH_ROWS])
@pytest.mark.parametrize(
    ("parts", "is_in_order"),
    [
        (["ab", "", "bc"], True),
        (["ac", "bd"], False),
        (["ab", "ca"], False),
    ],
)
def test_batches_are_in_order_where_each_is_and_follows_the_one_before(
    parts: list[str], is_in_order: bool, rows_each: int
) -> None:
    """FM-6: whether large batches are checked one by one or small ones together."""
    columns = [[value for value in part for _ in range(rows_each)] for part in parts]
    batches = [pa.record_batch({"id": pa.array(column, pa.large_string())}) for column in columns]
    order = order_of_batches(batches, ["id"])
    rows = pa.Table.from_batches(batches)["id"]
    assert (order is None) is is_in_order
    assert (rows if order is None else rows.take(order)).to_pylist() == sorted(rows.to_pylist())


def test_rows_in_order_are_not_copied_to_find_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sorting, "one_array")
    half = sorting._LARGE_BATCH_ROWS
    assert order_of_batches([pa.record_batch({"id": pa.array(range(s, s + half))}) for s in (0, half)], ["id"]) is None


def test_a_fall_after_a_long_rise_is_seen() -> None:
    values = np.arange(1000)
    values[999] = 0
    assert not is_sorted([pa.array(values)])
    assert is_sorted([pa.array(values[:999])])


def test_repeated_strings_sorted_by_rank_are_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    text = pa.array([f"k{number}" for number in generator.integers(0, 300, 40_000)], pa.large_string())
    number = pa.array(generator.integers(0, 50, 40_000))
    ranked = sorting_order([text, number])
    monkeypatch.setattr(sorting, "_RANKED_FROM_ROWS", 1 << 30)
    assert ranked == sorting_order([text, number])


@pytest.mark.parametrize(
    ("previous", "first", "expected"),
    [
        ((1, "b"), (1, "b"), True),
        ((1, "b"), (1, "a"), False),
        ((1, "b"), (2, "a"), True),
        ((None, "b"), (1, "a"), True),
        ((1, "b"), (None, "c"), False),
    ],
)
def test_a_run_continues_a_file_when_its_first_key_is_not_below_the_last(
    previous: tuple[object, ...], first: tuple[object, ...], expected: bool
) -> None:
    types = (pa.int64(), pa.large_string())

    def scalars(key: tuple[object, ...]) -> list[pa.Scalar]:
        return [pa.scalar(value, kind) for value, kind in zip(key, types, strict=True)]

    assert follows(scalars(previous), scalars(first)) is expected


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(
    "types",
    [
        ["few"],
        ["few", "int64"],
        ["int64", "few", "flag"],
        ["date", "time", "int8"],
        ["timestamp", "few"],
        ["extreme"],
        ["extreme", "few"],
        ["few", "distinct"],
        ["none", "int8"],
        ["int64", "int64", "timestamp", "timestamp"],
        ["decimal", "int8"],
    ],
)
def test_one_number_a_row_gives_the_order_of_rows_compared(types: list[str], nulls: bool) -> None:
    """FM-6: packed if 64 bits are enough, and stable with both methods."""
    count = 10_000
    generator = np.random.default_rng(len(types))
    integers = generator.integers(-500, 500, count)
    made = {
        "few": lambda: pa.array([f"k{number}" for number in generator.integers(0, 300, count)], pa.large_string()),
        "distinct": lambda: pa.array([f"k{number}" for number in generator.permutation(count)], pa.large_string()),
        "flag": lambda: pa.array(integers > 0),
        "int8": lambda: pa.array(integers // 10, pa.int8()),
        "int64": lambda: pa.array(integers * 1_000_003),
        "date": lambda: pa.array(integers, pa.int32()).cast(pa.date32()),
        "time": lambda: pa.array(generator.integers(0, 86_400_000_000, count)).cast(pa.time64("us")),
        "timestamp": lambda: pa.array(integers * 10**9).cast(pa.timestamp("us", tz="UTC")),
        "extreme": lambda: pa.array(generator.choice(np.array([-(2**63), -1, 0, 2**63 - 1]), count)),
        "none": lambda: pa.nulls(count, pa.int64()),
        "decimal": lambda: pa.array([Decimal(number) for number in integers.tolist()], pa.decimal128(9, 0)),
    }
    columns = [made[name]() for name in types]
    if nulls:
        columns = [pc.if_else(pa.array(generator.random(count) < 0.9), column, None) for column in columns]
    names = [str(place) for place in range(len(columns))]
    expected = pc.sort_indices(
        pa.RecordBatch.from_arrays(columns, names), sort_keys=[(name, "ascending", "at_start") for name in names]
    )
    assert sorting_order(columns) == expected
