"""`Staging`: rewritten files are written to a separate directory; the caller copies them and the unchanged files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from tableformat.relocation.file_copier import FileCopy
from tableformat.storage.location import one_spelling


class FileKind(StrEnum):
    """The kinds of files that contain paths."""

    METADATA = "metadata"
    MANIFEST_LIST = "manifest-list"
    MANIFEST = "manifest"
    ROW_DELETES = "row-deletes"


@dataclass(slots=True)
class Staging:
    """Sources and targets of files. Thread-safe."""

    directory: str
    target: str
    """The final location of `directory`. Its files have the same relative paths there."""
    rewritten: dict[str, tuple[str, FileKind]] = field(default_factory=dict)
    """By final location: the location where the file was written, and its kind."""
    kept: dict[str, str] = field(default_factory=dict)
    """By final location: the location of an unchanged file."""

    def place_of(self, location: str, *, kind: FileKind) -> str:
        """The location to write a file to, for its final location."""
        inside = one_spelling(location).removeprefix(f"{one_spelling(self.target).rstrip('/')}/")
        written = f"{self.directory.rstrip('/')}/{inside}"
        self.rewritten[location] = (written, kind)
        return written

    def note_kept(self, files: Iterable[FileCopy]) -> None:
        self.kept.update((file.target, file.location) for file in files)
