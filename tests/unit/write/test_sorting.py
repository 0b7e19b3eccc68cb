from __future__ import annotations

import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from tableformat.write.rows import sorting
from tableformat.write.rows.sorting import follows, order_of_batches, sorting_order


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


def test_sort_is_stable() -> None:
    key = pa.array([1, 0, 1, 0] * 100)
    order = sorting_order([key])
    assert order is not None
    assert order.to_pylist() == [*range(1, 400, 2), *range(0, 400, 2)]


@pytest.mark.parametrize("rows_each", [1, sorting._LARGE_BATCH_ROWS])
@pytest.mark.parametrize(
    ("parts", "is_in_order"),
    [
        (["ab", "", "bc"], True),
        (["ac", "bd"], False),
        (["ab", "ca"], False),
    ],
)
def test_sortedness_check_agrees_across_batches(parts: list[str], is_in_order: bool, rows_each: int) -> None:
    """FM-6: whether large batches are checked one by one or small ones together."""
    columns = [[value for value in part for _ in range(rows_each)] for part in parts]
    batches = [pa.record_batch({"id": pa.array(column, pa.large_string())}) for column in columns]
    order = order_of_batches(batches, ["id"])
    rows = pa.Table.from_batches(batches)["id"]
    assert (order is None) is is_in_order
    assert (rows if order is None else rows.take(order)).to_pylist() == sorted(rows.to_pylist())


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
def test_sorted_run_continues_a_file_if_keys_do_not_decrease(
    previous: tuple[object, ...], first: tuple[object, ...], expected: bool
) -> None:
    types = (pa.int64(), pa.large_string())

    def scalars(key: tuple[object, ...]) -> list[pa.Scalar]:
        return [pa.scalar(value, kind) for value, kind in zip(key, types, strict=True)]

    assert follows(scalars(previous), scalars(first)) is expected
