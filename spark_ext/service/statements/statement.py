"""The registry of statements: `@statement("name")` makes a function carry one out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tableformat.table import Table

Statement: TypeAlias = Mapping[str, Any]
"""A statement as the Java side parsed it: its `name`, and what it says."""
Rows: TypeAlias = "Sequence[Sequence[str | int | None]]"
"""The result, in the columns that the Java side has for the statement."""
Handler: TypeAlias = Callable[[Table, Statement], "Rows | None"]

_handlers: Final[dict[str, Handler]] = {}


def statement(name: str) -> Callable[[Handler], Handler]:
    """Register a function as what carries out the statement; without rows it returns None."""

    def register(handler: Handler) -> Handler:
        assert name not in _handlers, f"two statements are called {name}"
        _handlers[name] = handler
        return handler

    return register


def handler_of(name: str) -> Handler:
    return _handlers[name]
