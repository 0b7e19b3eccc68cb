"""A request as routes see it: its path, query and body, read completely and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import unquote_plus

from pyiceberg.typedef import Identifier

from tableformat.errors import InvalidArgumentError

_NAMESPACE_SEPARATOR: Final = "\x1f"
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request of a client."""

    path: Mapping[str, str]
    """The parts of the path by name, still percent-encoded, because a name may contain a slash."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def namespace(self) -> Identifier:
        return namespace_of(unquote_plus(self.path["namespace"]))

    def identifier(self, part: str) -> Identifier:
        """The namespace and the name in the path: `part` is `table` or `view`."""
        return (*self.namespace, unquote_plus(self.path[part]))

    def json(self) -> dict[str, Any]:
        """The body. Raises JSONDecodeError, or InvalidArgumentError if it is not an object."""
        value = json.loads(self.body or b"{}")
        if not isinstance(value, dict):
            raise InvalidArgumentError("the body must be a JSON object.")
        return value


def namespace_of(text: str) -> Identifier:
    """The levels of a namespace, which are separated by the unit separator."""
    parts = tuple(text.split(_NAMESPACE_SEPARATOR))
    if not all(parts):
        raise InvalidArgumentError(f"namespace {text!r:.200} has an empty level.")
    return parts


def identifier_of(value: Mapping[str, Any]) -> Identifier:
    """An identifier in a body: `{"namespace": ["db"], "name": "orders"}`."""
    return (*map(str, value["namespace"]), str(value["name"]))


def page_of(items: Sequence[Item], query: Mapping[str, str]) -> tuple[Sequence[Item], str | None]:
    """The items of the requested page, and the token of the next page. Without a page size, all items.

    `items` are sorted. A token is the number of items before its page; items that are added or dropped between two
    requests may be missing or listed twice.
    """
    size_text, token = query.get("pageSize"), query.get("pageToken") or "0"
    if size_text is None:
        return items, None
    if not (size_text.isdecimal() and int(size_text) > 0 and token.isdecimal()):
        raise InvalidArgumentError("pageSize must be a positive number, and pageToken a token of an earlier answer.")
    begin, size = int(token), int(size_text)
    end = begin + size
    return items[begin:end], str(end) if end < len(items) else None
