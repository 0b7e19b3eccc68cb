"""Columns that a CALL names as text."""

from __future__ import annotations

from collections.abc import Iterable


def as_spelled(name: str, names: Iterable[str]) -> str:
    """PR-1: a name that a CALL has as text, as the table spells it; itself where it is none, or one of several."""
    known = tuple(names)
    found = [each for each in known if each.casefold() == name.casefold()]
    return found[0] if name not in known and len(found) == 1 else name
