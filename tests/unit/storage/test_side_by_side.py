"""Small files that are read and written concurrently."""

from __future__ import annotations

import io
import threading

import pytest
from pyiceberg.io import FileIO, InputFile, OutputFile

from tableformat.storage.side_by_side import read_side_by_side, writes_side_by_side

SMALL, LARGE = 1_000, 1_000_000
LOCAL, REMOTE = "/lake/{}.parquet", "s3://lake/{}.parquet"


@pytest.mark.parametrize("place", [LOCAL, REMOTE])
@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_results_are_in_item_order(place: str, count: int, size: int) -> None:
    answers = read_side_by_side(lambda number: number * number, range(count), place.format, lambda _: size)
    assert answers == [number * number for number in range(count)]


def test_object_store_reads_run_concurrently() -> None:
    everybody = threading.Barrier(4, timeout=10)
    assert read_side_by_side(lambda _: everybody.wait() >= 0, range(4), REMOTE.format, lambda _: SMALL) == [True] * 4


def test_the_first_error_in_order_is_raised() -> None:
    def read(number: int) -> int:
        if number % 3 == 2:
            raise ValueError(number)
        return number

    with pytest.raises(ValueError, match=r"^2$"):
        read_side_by_side(read, range(30), REMOTE.format, lambda _: SMALL)


class _StoreOfThree(FileIO):
    """Answers to an upload when two others are under way."""

    def __init__(self, refused: str = "") -> None:
        super().__init__({})
        self.refused = refused
        self.everybody = threading.Barrier(3, timeout=10)
        self.files: list[str] = []

    def new_output(self, location: str) -> _StoreOfThree:
        self.everybody.wait()
        if location == self.refused:
            raise ValueError(location)
        self.files.append(location)
        return self

    def create(self, overwrite: bool = False) -> io.BytesIO:
        return io.BytesIO()

    def new_input(self, location: str) -> InputFile:
        raise NotImplementedError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError(location)


def _write_three(store: _StoreOfThree) -> None:
    with writes_side_by_side(store, "s3://lake/t") as write:
        assert [write(f"s3://lake/t/{number}", b"four") for number in range(3)] == [4, 4, 4]


def test_object_store_writes_run_concurrently_and_complete() -> None:
    store = _StoreOfThree()
    _write_three(store)
    assert sorted(store.files) == [f"s3://lake/t/{number}" for number in range(3)]


def test_failed_upload_raises_at_the_end_of_the_block() -> None:
    store = _StoreOfThree("s3://lake/t/1")
    with pytest.raises(ValueError, match="s3://lake/t/1"):
        _write_three(store)
    assert len(store.files) == 2
