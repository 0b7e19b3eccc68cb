"""Gives a new name to an added file that a job might remove under its current name (LK-31, decision 54)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata

from tableformat.metadata.content_file import DataFile
from tableformat.metadata.own_names import origin_of, suffix_of
from tableformat.metadata.owned_files import METADATA_SUFFIXES, OwnedFiles
from tableformat.operations.staging.draft import Draft
from tableformat.storage.another_name import give_another_name
from tableformat.storage.listing import list_files
from tableformat.storage.side_by_side import read_side_by_side
from tableformat.write.created_files import CreatedFiles

_DATA: Final = "/data/"


def with_own_names(draft: Draft, files: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """LK-31: the files, with a new name for each one that a job of this or another table might remove. The new name
    exists when this returns, and is removed with the other files of the draft. The former names stay."""
    removable = _Removable(draft.view.metadata, draft.view.io)
    created = CreatedFiles(draft.context)
    named = [_named(draft, file, created) if removable.has(file.file_path) else file for file in files]
    renamed = [(old, new) for old, new in zip(files, named, strict=True) if new is not old]
    draft.note_written(new.file_path for _, new in renamed)
    read_side_by_side(partial(_give, draft.view.io), renamed, _location, _no_bytes)
    return tuple(named)


def _named(draft: Draft, file: DataFile, created: CreatedFiles) -> DataFile:
    kind = suffix_of(origin_of(file.file_path, draft.view.metadata.location))
    return replace(file, file_path=created.new_location(kind, file.spec_id, file.partition))


def _give(io: FileIO, names: tuple[DataFile, DataFile]) -> None:
    old, new = names
    give_another_name(io, old.file_path, old.file_size_bytes, new.file_path)


def _location(names: tuple[DataFile, DataFile]) -> str:
    return names[0].file_path


def _no_bytes(names: tuple[DataFile, DataFile]) -> int:  # noqa: ARG001  a name costs no bytes of a disk
    return 0


class _Removable:
    """The files that a job might remove: files of the table itself, and files in the directory of another table."""

    def __init__(self, metadata: TableMetadata, io: FileIO) -> None:
        self._io = io
        # A job may find the location proved (MT-53) at any time, so it counts as proved here.
        self._owned = OwnedFiles(
            io,
            location=metadata.location,
            metadata_location=f"{metadata.location.rstrip('/')}/metadata/any.metadata.json",
            table_uuid=str(metadata.table_uuid),
            properties=metadata.properties,
        )
        self._known: dict[str, bool] = {}

    def has(self, location: str) -> bool:
        return self._owned.has(location) or any(map(self._is_a_table, _around(location)))

    def _is_a_table(self, directory: str) -> bool:
        if directory not in self._known:
            beside = list_files(self._io, f"{directory}/metadata")
            self._known[directory] = any(file.location.endswith(METADATA_SUFFIXES) for file in beside)
        return self._known[directory]


def _around(location: str) -> Iterator[str]:
    """The directories whose subdirectory `data` contains the file."""
    end = location.find(_DATA)
    while end >= 0:
        yield location[:end]
        end = location.find(_DATA, end + 1)
