"""The registry of statements: `@statement("name")` registers a function that runs one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tableformat.table import Table

Statement: TypeAlias = Mapping[str, Any]
"""A statement, as parsed by the Java side: its `name`, and its arguments."""
Rows: TypeAlias = "Sequence[Sequence[str | int | None]]"
"""The result. The Java side defines its columns for each statement."""
Handler: TypeAlias = Callable[[Table, Statement], "Rows | None"]

_handlers: Final[dict[str, Handler]] = {}


def statement(name: str) -> Callable[[Handler], Handler]:
    """Register a function that runs the statement. It returns None if the statement has no rows."""

    def register(handler: Handler) -> Handler:
        assert name not in _handlers, f"two statements have the name {name}"
        _handlers[name] = handler
        return handler

    return register


def handler_of(name: str) -> Handler:
    return _handlers[name]
