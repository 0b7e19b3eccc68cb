from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from tableformat.errors import InvalidKeyError, UnknownColumnError
from tableformat.write.rows.last_per_key import last_row_per_key

BOTH = pytest.mark.parametrize("memory_bytes", [1, 1 << 30], ids=["spilled", "in memory"])


def last(table: pa.Table, key: list[str], order_by: str | None = None, *, memory_bytes: int) -> list[dict[str, object]]:
    return last_row_per_key(table.to_reader(2), key, order_by, memory_bytes=memory_bytes).read_all().to_pylist()


@BOTH
def test_order_of_null_not_a_number_and_zero(memory_bytes: int) -> None:
    nan = float("nan")
    table = pa.table(
        {"k": [1, 1, 2, 2, 3, 3], "o": pa.array([nan, None, -1.0, nan, 0.0, -0.0]), "v": [1, 2, 3, 4, 5, 6]}
    )
    assert [row["v"] for row in last(table, ["k"], "o", memory_bytes=memory_bytes)] == [1, 3, 6]


@BOTH
def test_strings_with_zero_bytes_are_told_apart(memory_bytes: int) -> None:
    table = pa.table({"k": ["a", "a\0", "a"], "v": [1, 2, 3]})
    assert [row["v"] for row in last(table, ["k"], memory_bytes=memory_bytes)] == [2, 3]


def test_temporary_files_are_gone_when_the_reader_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = pa.table({"k": list(range(1000))})
    reader = last_row_per_key(table.to_reader(10), ["k"], memory_bytes=1)
    reader.read_next_batch()
    assert list(tmp_path.iterdir()) != []
    reader.read_all()
    assert list(tmp_path.iterdir()) == []


def test_unknown_and_nested_columns_are_refused() -> None:
    table = pa.table({"key": [1], "tags": [[1]]})
    with pytest.raises(UnknownColumnError):
        last_row_per_key(table.to_reader(), ["kye"])
    with pytest.raises(InvalidKeyError):
        last_row_per_key(table.to_reader(), ["tags"])
