"""Many small files read side by side."""

from __future__ import annotations

import threading

import pytest

from tableformat.storage.side_by_side import read_side_by_side

LOCAL, REMOTE = "/lake/{}.parquet", "s3://lake/{}.parquet"


@pytest.mark.parametrize("place", [LOCAL, REMOTE])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_answers_are_in_the_order_of_the_items(place: str, count: int) -> None:
    answers = read_side_by_side(lambda number: number * number, range(count), place.format)
    assert answers == [number * number for number in range(count)]


def test_files_of_an_object_store_are_waited_for_together() -> None:
    everybody = threading.Barrier(4, timeout=10)
    assert read_side_by_side(lambda _: everybody.wait() >= 0, range(4), REMOTE.format) == [True] * 4


def test_few_local_files_take_no_threads() -> None:
    threads = read_side_by_side(lambda _: threading.get_ident(), range(3), LOCAL.format)
    assert set(threads) == {threading.get_ident()}


def test_the_first_error_in_order_is_raised() -> None:
    def read(number: int) -> int:
        if number % 3 == 2:
            raise ValueError(number)
        return number

    with pytest.raises(ValueError, match=r"^2$"):
        read_side_by_side(read, range(30), REMOTE.format)
