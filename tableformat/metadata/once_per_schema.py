"""Caches results that depend only on a schema: the states of a table share their schemas, and a small commit needs the
Arrow schema three times."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, TypeVar

from pyiceberg.schema import Schema

from tableformat.storage.bounded_cache import BoundedCache

_SCHEMAS_MAX: Final = 128
_Made = TypeVar("_Made")


def once_per_schema(make: Callable[[Schema], _Made]) -> Callable[[Schema], _Made]:
    """The function with its last results cached. No caller may change a result.

    Schemas are compared by identity: they contain lists, so they cannot be keys of a dict.
    """
    made: BoundedCache[int, tuple[Schema, _Made]] = BoundedCache(_SCHEMAS_MAX)

    @wraps(make)
    def of(schema: Schema) -> _Made:
        known = made.get(id(schema))
        if known is not None:
            return known[1]
        answer = make(schema)
        # The schema is kept, so that no other object gets its id.
        made.put(id(schema), (schema, answer), 1)
        return answer

    return of
