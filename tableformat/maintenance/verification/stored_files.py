"""Files as the store has them: whether they are there, and as long as the metadata states (MT-71)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from pyiceberg.io import FileIO

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.maintenance.verification.findings import FindingKind, Flaw
from tableformat.storage import storage

FILES_AT_ONCE: Final = 64
"""Files that one task asks the store about."""
_DAMAGED: Final = frozenset({FindingKind.UNREADABLE_FILE, FindingKind.WRONG_CHECKSUM})
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class StatedFile:
    """A file as the metadata states it."""

    location: str
    size_bytes: int | None
    """None where the metadata does not say."""
    missing_kind: FindingKind = FindingKind.MISSING_FILE


def stored_file_flaws(io: FileIO, files: Sequence[StatedFile]) -> list[Flaw]:
    """MT-71: those of the files that are not there, or have another size. Asks the store once for each file.

    An error of the store that is not its answer "no such file" is raised as it is: an outage is no missing file.
    """
    return [flaw for file in files if (flaw := _flaw(io, file)) is not None]


def _flaw(io: FileIO, file: StatedFile) -> Flaw | None:
    found = storage.size_bytes(io, file.location)
    if found is None:
        return Flaw(file.missing_kind, file.location, "the file does not exist, although the metadata names it")
    if file.size_bytes is not None and found != file.size_bytes:
        what = "it was cut off" if found < file.size_bytes else "it is another file"
        return Flaw(
            FindingKind.WRONG_SIZE,
            file.location,
            f"it has {found:,} bytes where the metadata states {file.size_bytes:,}: {what}",
        )
    return None


def confirmed(read: Callable[[], AnswerT], flaws: Callable[[AnswerT], Iterable[Flaw]]) -> AnswerT:
    """MT-71: the answer of a read, which is made again where it finds damage: an answer of a store may be cut off or
    changed on the way, and the file be sound."""
    answer = read()
    return read() if any(flaw.kind in _DAMAGED for flaw in flaws(answer)) else answer


def flaw_of(io: FileIO, error: CorruptFileError | UnsupportedFeatureError, location: str) -> Flaw:
    """What an error tells of a file that was to be read, `location` where it does not say of which."""
    where = error.location if isinstance(error, CorruptFileError) else location
    what = str(error).removeprefix(f"{where}: ").rstrip(".")
    if isinstance(error, UnsupportedFeatureError):
        return Flaw(FindingKind.NOT_CHECKED, where, what)
    # Asked by size: some stores' `exists` takes an outage for "no".
    if storage.size_bytes(io, where) is None:
        return Flaw(FindingKind.MISSING_FILE, where, "the file does not exist, although the metadata names it")
    # Decoders of different libraries say it in their own words, all of them with this one.
    is_checksum = "checksum" in what.lower()
    return Flaw(FindingKind.WRONG_CHECKSUM if is_checksum else FindingKind.UNREADABLE_FILE, where, what)
