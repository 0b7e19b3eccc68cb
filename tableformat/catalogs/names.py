"""Checks the names in the arguments of catalog calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tableformat.errors import InvalidArgumentError
from tableformat.metadata.identifiers import identifier_parts, identifier_text

Identifier: TypeAlias = str | tuple[str, ...]


def check_namespace(namespace: Identifier) -> None:
    """Raises InvalidArgumentError for text that cannot be the name of a namespace. Otherwise the answer could be about
    other namespaces."""
    if not namespace:
        raise InvalidArgumentError("a namespace needs a name.")
    _check_parts(identifier_parts(namespace), "namespace")


def check_name(identifier: Identifier) -> None:
    """Check the name of a table, which includes its namespace.

    Names of only blanks and dots are rejected because a catalog or a path cannot distinguish them from an empty name.
    Halves of surrogate pairs are rejected because they are not valid text.
    """
    parts = identifier_parts(identifier)
    _check_parts(parts, "table")
    if len(parts) < 2:
        raise InvalidArgumentError(f"{dotted(identifier)!r} is not a table name: include the namespace, as in 'db.t'.")


def _check_parts(parts: Sequence[object], kind: str) -> None:
    if not all(map(_is_text, parts)):
        raise InvalidArgumentError(f"{kind} {parts!r}: the parts of a name must be text.")
    if any(not str(part).strip(" .\t\n") for part in parts):
        more = " Pass namespace and table." if kind == "table" else ""
        raise InvalidArgumentError(f"{kind} {'.'.join(map(str, parts))!r}: a part of the name is empty.{more}")


def _is_text(part: object) -> bool:
    return isinstance(part, str) and part.encode(errors="ignore").decode() == part


def dotted(identifier: Identifier) -> str:
    return identifier if isinstance(identifier, str) else identifier_text(identifier)
