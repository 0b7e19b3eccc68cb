"""The files that each operation of a draft stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tableformat.metadata.content_file import ContentFile, DataFile, DeleteFile
from tableformat.scan.planner import StagedFilesOnTop

_File = TypeVar("_File", bound=ContentFile)


@dataclass(slots=True)
class StagedVerb:
    """The files of one operation."""

    data_files: list[DataFile] = field(default_factory=list)
    delete_files: list[DeleteFile] = field(default_factory=list)


def files_on_top(verbs: Sequence[StagedVerb], first: int) -> StagedFilesOnTop:
    """The files as if each operation had been a snapshot. `first`: the sequence number of the first one."""
    return StagedFilesOnTop(
        tuple(_numbered(data, first + step) for step, verb in enumerate(verbs) for data in verb.data_files),
        tuple(_numbered(delete, first + step) for step, verb in enumerate(verbs) for delete in verb.delete_files),
    )


def _numbered(file: _File, sequence_number: int) -> _File:
    return replace(file, sequence_number=sequence_number)
