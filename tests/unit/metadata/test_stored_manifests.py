"""Decoded manifests on disk: another process finds them, and damaged ones cause no errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.metadata.columns import raw_manifest, read_columns, stored_manifests
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.cache_directory import DIRECTORY_VARIABLE


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory that takes small manifests of local disks too."""
    directory = tmp_path / "cache"
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(directory))
    monkeypatch.setattr(stored_manifests, "_LOCAL_FILES_MIN", 1)
    forget(monkeypatch)
    return directory


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the cached manifests, as in another process."""
    monkeypatch.setattr(read_columns, "_raw", BoundedCache(read_columns.RAW_BYTES))
    monkeypatch.setattr(read_columns, "_chunks", BoundedCache(read_columns.CHUNK_BYTES))


def new_table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(f"{tmp_path}/lake/")
    table = catalog.create_table("db.t", pa.schema([pa.field("id", pa.int64(), nullable=False)]), key=["id"])
    table.append(pa.table({"id": [1, 2]}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)])))
    return table


def stored(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def refuse(*_: Any) -> Any:
    raise AssertionError("a manifest was read")


def test_cached_manifests_are_used_by_another_process(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path)
    plan = table.scan("id > 1").plan()
    forget(monkeypatch)
    monkeypatch.setattr(raw_manifest, "read_container", refuse)
    assert table.scan("id > 1").plan() == plan


@pytest.mark.parametrize("damage", [b"", b"other bytes"])
def test_a_damaged_file_is_replaced(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    table = new_table(tmp_path)
    plan = table.scan().plan()
    (file,) = stored(cache)
    whole = file.read_bytes()
    file.write_bytes(damage)
    forget(monkeypatch)
    assert table.scan().plan() == plan
    assert [each.read_bytes() for each in stored(cache)] == [whole]


def test_unwritable_cache_directory_warns(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path)
    cache.write_bytes(b"a file")
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        assert len(table.scan().plan().tasks) == 1
