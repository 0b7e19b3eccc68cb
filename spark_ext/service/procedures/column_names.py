"""Columns that a CALL names in text."""

from __future__ import annotations

from collections.abc import Iterable


def as_spelled(name: str, names: Iterable[str]) -> str:
    """PR-1: the spelling of the table for a column name in a CALL. The name is returned unchanged if it matches no
    column, or several."""
    known = tuple(names)
    found = [each for each in known if each.casefold() == name.casefold()]
    return found[0] if name not in known and len(found) == 1 else name
