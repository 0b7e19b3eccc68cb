"""Checks the names of new tables, namespaces, branches and tags.

Names become directories and keys of an object store. No name may lead out of the warehouse, or have a special meaning
for a store, a catalog's database or a terminal. Existing objects can have any name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from tableformat.errors import InvalidArgumentError

_SEPARATORS: Final = re.compile(r"[/\\]")
_ESCAPES: Final = str.maketrans({"%": "%25", "/": "%2F", "\\": "%5C"})
_NAME_BYTES_MAX: Final = 255
"""The maximum length of a name in common file systems."""


def check_new_name(parts: Sequence[str], kind: str) -> None:
    """Refuse a name of a namespace or table, given in parts, for which `directory_of` has no directory.

    Raises InvalidArgumentError, which shows the name with unprintable characters escaped.
    """
    if not parts:
        raise InvalidArgumentError(f"a {kind} needs a name.")
    for part in parts:
        _check_text(part, kind, parts)
        if not part.strip() or part != part.strip("."):
            raise _refusal(kind, parts, "a part of the name is empty, or begins or ends with a dot")
        if not all(step.strip(" .") for step in _SEPARATORS.split(part)):
            raise _refusal(kind, parts, "it refers to another directory")
        if len(directory_of(part).encode()) > _NAME_BYTES_MAX:
            raise _refusal(kind, parts, f"a part of the name has more than {_NAME_BYTES_MAX} bytes")


def directory_of(name: str) -> str:
    """The directory of a namespace or a table, for any separators in its name. No two have the same directory, and none
    is inside another."""
    return name.translate(_ESCAPES)


def check_new_ref_name(name: str, kind: str) -> None:
    """Refuse a name of a branch or tag that is blank or cannot be printed. It never becomes a path, so slashes and dots
    are allowed."""
    _check_text(name, kind, [name])
    if not name.strip():
        raise InvalidArgumentError(f"a {kind} needs a name, not {name!r}.")


def _check_text(part: str, kind: str, parts: Sequence[str]) -> None:
    if not isinstance(part, str):
        raise InvalidArgumentError(f"a {kind} needs a name, not {part!r}.")
    # Cc: control characters, including the null byte. Cs: lone surrogates, which UTF-8 cannot encode.
    found = next((character for character in part if unicodedata.category(character) in ("Cc", "Cs")), None)
    if found is not None:
        raise _refusal(kind, parts, f"{found!r} is not allowed in a name")


def _refusal(kind: str, parts: Sequence[str], why: str) -> InvalidArgumentError:
    name = ".".join(map(str, parts))
    shown = name if len(name) <= 60 else f"{name[:60]}..."
    return InvalidArgumentError(f"{kind} {shown!r}: {why}. Nothing was created. Choose another name.")
