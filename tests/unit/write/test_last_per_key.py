from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from tableformat.errors import InvalidKeyError, UnknownColumnError
from tableformat.write.rows.last_per_key import last_row_per_key


def test_temporary_files_are_removed_with_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
