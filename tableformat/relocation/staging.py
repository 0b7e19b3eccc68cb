"""`Staging`: rewritten files are written to a directory of their own, and somebody else copies them, and the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from tableformat.relocation.file_copier import FileCopy
from tableformat.storage.location import one_spelling


class FileKind(StrEnum):
    """Of files that name others."""

    METADATA = "metadata"
    MANIFEST_LIST = "manifest-list"
    MANIFEST = "manifest"
    ROW_DELETES = "row-deletes"


@dataclass(slots=True)
class Staging:
    """What goes where. Safe to use from several threads."""

    directory: str
    target: str
    """Where the files of `directory` belong, at the same place within it."""
    rewritten: dict[str, tuple[str, FileKind]] = field(default_factory=dict)
    """By place: where it was written, and what it is."""
    kept: dict[str, str] = field(default_factory=dict)
    """By place: the location of a file that stays as it is."""

    def place_of(self, location: str, *, kind: FileKind) -> str:
        """Where a file is written that is to be at the location."""
        inside = one_spelling(location).removeprefix(f"{one_spelling(self.target).rstrip('/')}/")
        written = f"{self.directory.rstrip('/')}/{inside}"
        self.rewritten[location] = (written, kind)
        return written

    def note_kept(self, files: Iterable[FileCopy]) -> None:
        self.kept.update((file.target, file.location) for file in files)
