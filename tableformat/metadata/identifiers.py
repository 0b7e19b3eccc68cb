"""Converts identifiers of tables and namespaces between text and parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_PART: Final = re.compile(r'"((?:[^"]|"")*)"(?=\.|\Z)|([^.]*)')


def identifier_text(parts: Iterable[str]) -> str:
    """LK-1: the parts joined by dots. A part that contains a dot is in double quotes: `db."a.b"`."""
    return ".".join(map(_part_text, parts))


def identifier_parts(identifier: str | Sequence[str]) -> tuple[str, ...]:
    """LK-1: the parts of an identifier that `identifier_text` or a user wrote. Parts are returned unchanged."""
    if not isinstance(identifier, str):
        return tuple(identifier)
    parts = []
    position = 0
    while position <= len(identifier):
        match = _PART.match(identifier, position)
        assert match is not None, "the second branch also matches nothing"
        parts.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        position = match.end() + 1
    return tuple(parts)


def _part_text(part: str) -> str:
    return '"' + part.replace('"', '""') + '"' if "." in part or part.startswith('"') else part
