"""The registry of methods that Java can call.

A method is a function of the session and the request, registered by `@method("name")`; it returns JSON, or an Answer
with binary parts. Modules with methods are listed in `_MODULES` and loaded at the first call.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from spark_ext.service.session import Session

Buffer: TypeAlias = "bytes | memoryview"

_MODULES: Final = (
    "ddl.namespaces",
    "ddl.tables",
    "ddl.alter",
    "ddl.like",
    "ddl.views",
    "reads.scans",
    "states.read_options",
    "states.session_settings",
    "states.table_places",
    "states.write_audit_publish",
    "changes.change_feed",
    "changes.changelog",
    "streams.micro_batches",
    "reads.aggregates",
    "reads.metadata_tables",
    "writes.write_plan",
    "writes.commits",
    "writes.deletes",
    "writes.deletes_of_keys",
    "writes.partitions",
    "ddl.staged_tables",
    "procedures.calls",
    "statements.run",
)


@dataclass(frozen=True, slots=True)
class Request:
    """One call."""

    arguments: dict[str, Any]
    parts: Sequence[bytes] = ()
    """Binary arguments."""

    @property
    def table(self) -> tuple[str, ...]:
        """The identifier of the table that the call is about."""
        return tuple(self.arguments["table"])

    @property
    def namespace(self) -> tuple[str, ...]:
        return tuple(self.arguments["namespace"])


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a method with binary parts."""

    result: Any
    """JSON."""
    parts: Sequence[Buffer] = ()


Handler: TypeAlias = "Callable[[Session, Request], Any]"
_handlers: Final[dict[str, Handler]] = {}


def method(name: str) -> Callable[[Handler], Handler]:
    """Register a function as the method with this name."""

    def register(handler: Handler) -> Handler:
        assert name not in _handlers, f"two methods have the name {name}"
        _handlers[name] = handler
        return handler

    return register


def handler_of(name: str) -> Handler:
    _load_modules()
    return _handlers[name]


@cache
def _load_modules() -> None:
    for module in _MODULES:
        importlib.import_module(f"spark_ext.service.{module}")
