"""Files that a user names by a directory or a pattern, and the values in names of directories (`day=2026-01-31`)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from pyiceberg.io import FileIO

from tableformat.errors import InvalidArgumentError
from tableformat.storage.listing import list_files
from tableformat.storage.location import local_path
from tableformat.storage.storage import size_bytes

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_HIDDEN: Final = ("_", ".")
"""Prefixes of names of files and directories that Spark ignores."""
_WILDCARD: Final = re.compile(r"[*?\[]")
_PIECE: Final = re.compile(r"\*\*/|\*|\?|\[!?[^\]]+\]|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HiveFile:
    """A data file and the values in the names of its directories, as text by column; None is null."""

    location: str
    values: Mapping[str, str | None]
    """The directories that were found below the given one."""
    above: Mapping[str, str | None]
    """The other directories of the location. Their names may be unrelated to the table."""


def named_files(io: FileIO, location: str) -> list[HiveFile]:
    """LK-10: the file at the location, all files below it if it is a directory, or all files that match it if it is a
    pattern: `*` and `?` stay within one name, `**` stands for any directories. Ordered by location.

    Raises InvalidArgumentError for a directory or pattern without files.
    """
    path = local_path(location)
    wildcard = _WILDCARD.search(location)
    if path is not None and os.path.isdir(path):
        root, found = location, _strictly(files_below(io, location))
    elif wildcard is not None and not _exists(io, location, path):
        root = location[: wildcard.start()].rpartition("/")[0]
        matches = _pattern(location[len(root) + 1 :]).fullmatch
        found = [(each, values_in(inside)) for each, inside in files_below(io, root) if matches(inside)]
    else:
        root, found = location.rpartition("/")[0], [(location, {})]
        if path is None and not location.endswith(".parquet") and size_bytes(io, location) is None:
            # An object store has no directories, only files whose names begin alike.
            found = _strictly(files_below(io, location)) or found
    if not found:
        raise InvalidArgumentError(f"no Parquet files exist at {location}. Nothing was changed.")
    above = values_in(f"{root}/")
    return [HiveFile(each, values, above) for each, values in sorted(found, key=lambda file: file[0])]


def _exists(io: FileIO, location: str, path: str | None) -> bool:
    """Whether the characters of a pattern are those of a name."""
    return size_bytes(io, location) is not None if path is None else os.path.lexists(path)


def _strictly(files: Iterable[tuple[str, str]]) -> list[tuple[str, dict[str, str | None]]]:
    return [(each, values_of_directories(inside, each)) for each, inside in files]


def _pattern(text: str) -> re.Pattern[str]:
    """A directory that matches stands for the files below it."""
    return re.compile("".join(_expression(piece[0]) for piece in _PIECE.finditer(text)) + "(?:/.*)?")


def _expression(piece: str) -> str:
    match piece:
        case "**/":
            return "(?:[^/]+/)*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case _ if len(piece) > 1:
            return f"[{piece[1:-1].replace('!', '^', 1) if piece[1] == '!' else piece[1:-1]}]"
        case _:
            return re.escape(piece)


def files_below(io: FileIO, directory: str) -> Iterator[tuple[str, str]]:
    """Locations of the files below the directory, each with its relative path, without empty and hidden files."""
    path = local_path(directory)
    root = f"file://{path}" if path is not None else directory
    root = root.rstrip("/")
    for file in list_files(io, root):
        inside = file.location.removeprefix(f"{root}/")
        if file.size_bytes and not any(part.startswith(_HIDDEN) and "=" not in part for part in inside.split("/")):
            yield file.location, inside


def values_in(path: str) -> dict[str, str | None]:
    """The values of the directories in a path whose names are a column and its value. Others are left out."""
    pairs = (directory.partition("=") for directory in path.split("/")[:-1])
    return {unquote(name): None if text == NULL else unquote(text) for name, is_value, text in pairs if is_value}


def values_of_directories(path: str, location: str) -> dict[str, str | None]:
    """The same. Raises InvalidArgumentError for another directory."""
    for directory in path.split("/")[:-1]:
        if "=" not in directory:
            raise InvalidArgumentError(
                f"{location}: its directory {directory!r} is not a partition, such as day=2026-01-31, so it may "
                "belong to another table. Pass the directory that has the files."
            )
    return values_in(path)
