"""Cache directories: which files are kept, for how long, and how damaged files are handled."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tableformat.errors import InvalidArgumentError
from tableformat.storage.cache_directory import (
    BYTES_DEFAULT,
    BYTES_VARIABLE,
    DIRECTORY_VARIABLE,
    CacheDirectory,
)


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def content_of(cache: CacheDirectory, identity: str) -> bytes | None:
    found = cache.get(identity)
    return None if found is None else bytes(found)


def test_cache_is_off_by_default(tmp_path: Path) -> None:
    assert CacheDirectory.from_environment({}) is None
    assert CacheDirectory.from_environment({DIRECTORY_VARIABLE: ""}) is None
    named = CacheDirectory.from_environment({DIRECTORY_VARIABLE: str(tmp_path), BYTES_VARIABLE: "7"})
    assert named == CacheDirectory(tmp_path, 7)
    automatic = CacheDirectory.from_environment({DIRECTORY_VARIABLE: "auto", "XDG_CACHE_HOME": str(tmp_path)})
    assert automatic == CacheDirectory(tmp_path / "tableformat" / "metadata", BYTES_DEFAULT)


@pytest.mark.parametrize("size", ["-1", "2G", "", "1.5"])
def test_invalid_cache_size_is_rejected(size: str) -> None:
    with pytest.raises(InvalidArgumentError, match=BYTES_VARIABLE):
        CacheDirectory.from_environment({DIRECTORY_VARIABLE: "/x", BYTES_VARIABLE: size})


def test_cached_content_is_shared_by_identity(tmp_path: Path) -> None:
    cache = CacheDirectory(tmp_path / "new" / "directory", 10_000)
    assert cache.get("a") is None
    cache.put("a", b"content")
    cache.put("b", b"")
    other = CacheDirectory(tmp_path / "new" / "directory", 10_000)
    assert (content_of(other, "a"), content_of(other, "b"), content_of(other, "c")) == (b"content", b"", None)
    assert {path.stat().st_mode & 0o077 for path in files(tmp_path)} == {0}


@pytest.mark.parametrize("position", [0, 8, 12, 20, 25, -1])
def test_damaged_cache_file_is_removed_and_a_miss(tmp_path: Path, position: int) -> None:
    cache = CacheDirectory(tmp_path, 10_000)
    cache.put("identity", b"content")
    (file,) = files(tmp_path)
    damaged = bytearray(file.read_bytes())
    damaged[position] ^= 1
    file.write_bytes(damaged)
    assert cache.get("identity") is None
    assert files(tmp_path) == []


@pytest.mark.parametrize("length", [0, 5, 24, 30])
def test_truncated_cache_file_is_removed_and_a_miss(tmp_path: Path, length: int) -> None:
    cache = CacheDirectory(tmp_path, 10_000)
    cache.put("identity", b"content")
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:length])
    assert cache.get("identity") is None
    assert files(tmp_path) == []


def test_least_recently_used_files_are_evicted(tmp_path: Path) -> None:
    cache = CacheDirectory(tmp_path, 1_000)
    for number in range(8):
        cache.put(str(number), bytes(150))
        (newest,) = [path for path in files(tmp_path) if path.stat().st_mtime > 1_000_000]
        os.utime(newest, (number, number))
    assert content_of(cache, "0") == bytes(150), "which is a use"
    cache.make_room()
    left = [number for number in range(8) if cache.get(str(number)) is not None]
    assert left == [0, 5, 6, 7]


def test_leftover_temporary_files_are_removed(tmp_path: Path) -> None:
    cache = CacheDirectory(tmp_path, 1_000)
    cache.put("a", b"content")
    folder = files(tmp_path)[0].parent
    for name, age in (("old.tmp", 0), ("new.tmp", None)):
        (folder / name).write_bytes(b"half")
        if age is not None:
            os.utime(folder / name, (age, age))
    cache.make_room()
    assert [path.name for path in files(tmp_path) if path.suffix == ".tmp"] == ["new.tmp"]


def test_concurrent_writers_and_readers_see_complete_files(tmp_path: Path) -> None:
    cache = CacheDirectory(tmp_path, 4_000)

    def use(number: int) -> bool:
        identity = str(number % 5)
        cache.put(identity, identity.encode() * 500)
        cache.make_room()
        return content_of(cache, identity) in (None, identity.encode() * 500)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(use, range(200)))
