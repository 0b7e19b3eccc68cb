"""Checks that files exist in the store with the length that the metadata states (MT-71)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from pyiceberg.io import FileIO

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.maintenance.verification.findings import FindingKind, Flaw
from tableformat.storage import storage

FILES_AT_ONCE: Final = 64
"""The number of files whose size one task requests from the store."""
_DAMAGED: Final = frozenset({FindingKind.UNREADABLE_FILE, FindingKind.WRONG_CHECKSUM})
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class StatedFile:
    """A file and its size according to the metadata."""

    location: str
    size_bytes: int | None
    """None if the metadata does not state it."""
    missing_kind: FindingKind = FindingKind.MISSING_FILE


def stored_file_flaws(io: FileIO, files: Sequence[StatedFile]) -> list[Flaw]:
    """MT-71: flaws for files that do not exist or have a different size. Sends one request for each file.

    Only the answer "no such file" counts as a missing file. Any other error of the store is raised unchanged, because
    an outage does not mean that files are missing.
    """
    return [flaw for file in files if (flaw := _flaw(io, file)) is not None]


def _flaw(io: FileIO, file: StatedFile) -> Flaw | None:
    found = storage.size_bytes(io, file.location)
    if found is None:
        return Flaw(file.missing_kind, file.location, "the file does not exist, although the metadata references it")
    if file.size_bytes is not None and found != file.size_bytes:
        what = "it was cut off" if found < file.size_bytes else "it is another file"
        return Flaw(
            FindingKind.WRONG_SIZE,
            file.location,
            f"it has {found:,} bytes, but the metadata states {file.size_bytes:,}: {what}",
        )
    return None


def confirmed(read: Callable[[], AnswerT], flaws: Callable[[AnswerT], Iterable[Flaw]]) -> AnswerT:
    """MT-71: the result of a read. If it finds damage, it is repeated: an answer of the store may have been truncated
    or changed in transit although the file is intact."""
    answer = read()
    return read() if any(flaw.kind in _DAMAGED for flaw in flaws(answer)) else answer


def flaw_of(io: FileIO, error: CorruptFileError | UnsupportedFeatureError, location: str) -> Flaw:
    """The flaw for an error that was raised when a file was read. `location` is used if the error names no file."""
    where = error.location if isinstance(error, CorruptFileError) else location
    what = str(error).removeprefix(f"{where}: ").rstrip(".")
    if isinstance(error, UnsupportedFeatureError):
        return Flaw(FindingKind.NOT_CHECKED, where, what)
    # Requests the size, because `exists` of some stores returns False during an outage.
    if storage.size_bytes(io, where) is None:
        return Flaw(FindingKind.MISSING_FILE, where, "the file does not exist, although the metadata references it")
    # Decoders of different libraries use different messages, but all contain this word.
    is_checksum = "checksum" in what.lower()
    return Flaw(FindingKind.WRONG_CHECKSUM if is_checksum else FindingKind.UNREADABLE_FILE, where, what)
