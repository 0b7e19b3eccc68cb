"""If a store cannot be listed, a storage error is raised, not an error about the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from tableformat.errors import StorageError
from tableformat.storage.listing import list_files


class Failing:
    """A file system of either kind whose listing fails."""

    def get_file_info(self, _selector: object) -> list[Any]:
        raise OSError(121, "injected")

    def find(self, _path: str, *, detail: bool) -> dict[str, Any]:
        raise OSError(121, f"injected, detail={detail}")

    def _strip_protocol(self, path: str) -> str:
        return path.removeprefix("s3://")


@pytest.mark.parametrize(
    ("file_io", "method"), [(PyArrowFileIO, "fs_by_scheme"), (FsspecFileIO, "get_fs")], ids=["arrow", "fsspec"]
)
def test_failed_listing_raises_storage_error(
    file_io: Callable[..., Any], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    io = file_io({"s3.region": "us-east-1"})
    monkeypatch.setattr(io, method, lambda *_: Failing())
    with pytest.raises(StorageError, match=r"s3://lake/t could not be listed: OSError: .*injected"):
        list(list_files(io, "s3://lake/t"))
