"""One route: a method and a path of the specification, and the function that answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from starlette.responses import Response

from tableformat.server.context import ServerContext
from tableformat.server.requests import ApiRequest

Handler: TypeAlias = Callable[[ServerContext, ApiRequest], Response]


@dataclass(frozen=True, slots=True)
class Route:
    """A route that clients see in the configuration."""

    method: str
    path: str
    """Below `/v1/`, with names in braces, as in `namespaces/{namespace}/tables`."""
    handler: Handler
    changes: bool = False
    """Refused by a read-only server."""

    @property
    def endpoint(self) -> str:
        """The route in the form of the configuration's list of endpoints."""
        return f"{self.method} /v1/{{prefix}}/{self.path}"
