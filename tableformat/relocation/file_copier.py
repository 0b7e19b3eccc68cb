"""`FileCopier`: copies files concurrently, except those that were copied before."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyiceberg.io import FileIO

from tableformat.storage.location import local_path
from tableformat.storage.storage import delete_if_present, open_input, open_output, size_bytes, writing

_CHUNK_BYTES: Final = 8 * 1024 * 1024
_COPIERS: Final = 8
_UNFINISHED: Final = ".unfinished"
"""Local files get their names when they are complete. Object stores only name complete objects."""


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file and its target."""

    location: str
    target: str
    size_bytes: int | None
    """The size in the metadata; None if it has none."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The copied files, or with a dry run the files to copy."""

    file_count: int = 0
    size_bytes: int = 0
    present_file_count: int = 0
    """Files that existed with the expected size."""

    def __add__(self, other: Copied) -> Copied:
        return Copied(
            self.file_count + other.file_count,
            self.size_bytes + other.size_bytes,
            self.present_file_count + other.present_file_count,
        )


class FileCopier:
    """LK-7: copies between two stores. An interrupted copy leaves no file that looks complete."""

    def __init__(self, source: FileIO, target: FileIO, *, dry_run: bool) -> None:
        self._source = source
        self._target = target
        self._dry_run = dry_run

    def copy_all(self, files: Iterable[FileCopy]) -> Copied:
        """Raises CorruptFileError if a file is missing, StorageError for errors of the stores."""
        with ThreadPoolExecutor(_COPIERS) as pool:
            return sum(pool.map(self._copy, files), Copied())

    def _copy(self, file: FileCopy) -> Copied:
        size = file.size_bytes if file.size_bytes is not None else size_bytes(self._source, file.location)
        there = size_bytes(self._target, file.target)
        if there is not None and there == size:
            return Copied(present_file_count=1)
        if not self._dry_run:
            if there is not None:
                delete_if_present(self._target, file.target)
            with open_input(self._source, file.location, size) as stream:
                self._write(stream, file.target)
        return Copied(1, size or 0)

    def _write(self, stream: pa.NativeFile, target: str) -> None:
        is_local = local_path(target) is not None
        unfinished = f"{target}{_UNFINISHED}" if is_local else target
        if is_local:
            delete_if_present(self._target, unfinished)
        with open_output(self._target, unfinished) as output:
            while chunk := stream.read(_CHUNK_BYTES):
                output.write(chunk)
        path, final = local_path(unfinished), local_path(target)
        if is_local and path is not None and final is not None:
            with writing(target):
                os.replace(path, final)
