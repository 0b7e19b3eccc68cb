"""Files by location: local files through the operating system, others through a FileIO."""

from __future__ import annotations

import io as stdlib_io
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from tableformat.errors import AlreadyExistsError, CorruptFileError, StorageError
from tableformat.storage import storage
from tableformat.storage.location import local_path, one_spelling

LOCAL = PyArrowFileIO()


class _MemoryFile(stdlib_io.BytesIO):
    def __init__(self, files: dict[str, bytes], location: str) -> None:
        super().__init__()
        self.files, self.location = files, location

    def close(self) -> None:
        if not self.closed:
            self.files[self.location] = self.getvalue()
        super().close()


class _MemoryLocation:
    def __init__(self, files: dict[str, bytes], location: str) -> None:
        self.files, self.location = files, location

    def exists(self) -> bool:
        return self.location in self.files

    def open(self, seekable: bool = True) -> stdlib_io.BytesIO:
        if self.location not in self.files:
            raise FileNotFoundError(self.location)
        return stdlib_io.BytesIO(self.files[self.location])

    def create(self, overwrite: bool = False) -> _MemoryFile:
        if not overwrite and self.exists():
            raise FileExistsError(self.location)
        return _MemoryFile(self.files, self.location)


class _MemoryFileIO(FileIO):
    """An object store in a dictionary."""

    def __init__(self) -> None:
        super().__init__({})
        self.files: dict[str, bytes] = {}

    def new_input(self, location: str) -> _MemoryLocation:
        return _MemoryLocation(self.files, location)

    def new_output(self, location: str) -> _MemoryLocation:
        return _MemoryLocation(self.files, location)

    def delete(self, location: str) -> None:
        if location not in self.files:
            raise FileNotFoundError(location)
        del self.files[location]


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "/a/b"),
        ("a/b", "a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("file:///a/name=x%2Fy", "/a/name=x%2Fy"),
        ("s3://bucket/a", None),
        ("abfss://c@account.dfs.core.windows.net/a", None),
    ],
)
def test_only_file_locations_are_local_paths(location: str, path: str | None) -> None:
    assert local_path(location) == path


def test_spellings_of_one_location_are_normalized() -> None:
    assert {one_spelling(text) for text in ("/a/b", "file:/a/b", "file:///a/b")} == {"/a/b"}
    assert one_spelling("s3a://bucket/a") == one_spelling("s3://bucket/a")


@pytest.fixture(params=["local", "file-uri", "object-store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileIO, str]:
    """A FileIO and a directory in it that does not exist yet."""
    if request.param == "object-store":
        return _MemoryFileIO(), "memory://bucket/new/directory"
    prefix = "file://" if request.param == "file-uri" else ""
    return LOCAL, f"{prefix}{tmp_path}/new/directory"


def test_written_bytes_are_read_back(place: tuple[FileIO, str]) -> None:
    io, directory = place
    location = f"{directory}/file.avro"
    assert not storage.exists(io, location)
    assert storage.write_bytes(io, location, b"some bytes") == 10
    assert storage.exists(io, location)
    assert storage.read_bytes(io, location) == b"some bytes"
    for stated_size_bytes in (10, 0, 3, 11, -1, 1_000_000):
        assert storage.read_bytes(io, location, stated_size_bytes) == b"some bytes"
    with storage.open_input(io, location, 10) as file:
        assert isinstance(file, pa.NativeFile)
        file.seek(5)
        assert file.read() == b"bytes"
        assert file.size() == 10


def test_an_existing_file_is_never_overwritten(place: tuple[FileIO, str]) -> None:
    """FM-1."""
    io, directory = place
    location = f"{directory}/file.avro"
    storage.write_bytes(io, location, b"first")
    with pytest.raises(AlreadyExistsError):
        storage.write_bytes(io, location, b"second")
    with pytest.raises(AlreadyExistsError), storage.open_output(io, location):
        pass
    assert storage.read_bytes(io, location) == b"first"


def test_streamed_file_contains_all_written_bytes(place: tuple[FileIO, str]) -> None:
    io, directory = place
    location = f"{directory}/file.parquet"
    with storage.open_output(io, location) as file:
        file.write(b"one ")
        file.write(b"two")
    assert storage.read_bytes(io, location) == b"one two"


def test_missing_file_error_uses_the_spelling_of_metadata(place: tuple[FileIO, str]) -> None:
    io, directory = place
    location = f"{directory}/gone.parquet"
    storage.write_bytes(io, f"{directory}/there.parquet", b"")  # Without its directory it would be an outage.
    for read in (storage.read_bytes, storage.open_input):
        with pytest.raises(CorruptFileError, match="does not exist") as caught:
            read(io, location)
        assert caught.value.location == location


def test_file_shorter_than_stated_is_truncated(place: tuple[FileIO, str]) -> None:
    io, directory = place
    storage.write_bytes(io, f"{directory}/cut.parquet", b"PAR1")
    with pytest.raises(CorruptFileError, match=r"cut\.parquet: it has 4 bytes, but the metadata states 100"):
        storage.open_input(io, f"{directory}/cut.parquet", 100)


def test_deleting_a_file_twice_is_allowed(place: tuple[FileIO, str]) -> None:
    io, directory = place
    location = f"{directory}/file.avro"
    storage.write_bytes(io, location, b"")
    storage.delete_if_present(io, location)
    storage.delete_if_present(io, location)
    assert not storage.exists(io, location)


def test_an_empty_file_can_be_opened(tmp_path: Path) -> None:
    storage.write_bytes(LOCAL, f"{tmp_path}/empty", b"")
    with storage.open_input(LOCAL, f"{tmp_path}/empty") as file:
        assert file.read() == b""


class _FailingFile(_MemoryFile):
    """A full store, which reports it when the file is closed."""

    def __init__(self, error: Exception) -> None:
        super().__init__({}, "")
        self.error = error

    def close(self) -> None:
        stdlib_io.BytesIO.close(self)
        raise self.error


@pytest.mark.parametrize("error", [FileNotFoundError("no bucket"), OSError("AWS Error SLOW_DOWN"), PermissionError(1)])
def test_store_error_on_close_raises_storage_error(error: Exception) -> None:
    """Not the bare OSError of a client, and never an error about a missing file, which would be damage."""

    class Output:
        def create(self, overwrite: bool = False) -> _FailingFile:
            return _FailingFile(error)

    class Store(PyArrowFileIO):
        def new_output(self, location: str) -> Output:  # type: ignore[override]
            return Output()

    with pytest.raises(StorageError, match="s3://b/x could not be written"):
        storage.write_bytes(Store(), "s3://b/x", b"abc")
    with pytest.raises(StorageError, match="s3://b/x could not be written"), storage.open_output(Store(), "s3://b/x"):
        pass
