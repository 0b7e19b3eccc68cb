"""`file:` URIs (RFC 8089), as users give them for paths of this machine (LK-32)."""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from tableformat.errors import InvalidArgumentError
from tableformat.storage.location import from_anywhere, local_path

_PREFIX: Final = re.compile(r"file:(//(localhost(?=/))?)?", re.IGNORECASE)
_UNUSABLE: Final = re.compile(r"%2f|%00", re.IGNORECASE)
"""A separator inside of a name, and the end of a text: no name of a file has either."""


def is_file_uri(text: str) -> bool:
    return text[:5].lower() == "file:"


def absolute_path(path: str) -> str:
    """The path, or the one that a `file:` URI names (LK-32), as another process understands it."""
    return path_of_file_uri(path) if is_file_uri(path) else os.path.abspath(os.path.expanduser(path))


def path_of_file_uri(uri: str) -> str:
    """LK-32: the decoded path of `file:/lake`, `file:///my%20lake` or `file://localhost/lake`.

    InvalidArgumentError for a path that is not absolute, for another machine, for bytes that are no path, and where a
    file has the undecoded name: it may be the one that is meant.
    """
    path = _PREFIX.sub("", uri, count=1)
    if not path.startswith("/") or path.startswith("//"):
        raise InvalidArgumentError(
            f"{uri!r} names no absolute path on this machine. Write a path, or file:///path/to/lake."
        )
    decoded = _decoded(path)
    if decoded is None:
        raise InvalidArgumentError(
            f"{uri!r} has percent-encoded bytes that no path has: %2F, %00, or text that is not UTF-8. Give the path "
            "instead of a URI."
        )
    if decoded != path and os.path.lexists(path):
        raise InvalidArgumentError(
            f"{uri!r} is the URI of {decoded!r}, and there is {path!r} too. Give the path that is meant instead of a "
            "URI."
        )
    return decoded


def location_of_existing(given: str) -> str:
    """LK-30, LK-32: where a file or directory is that a user names and that exists already.

    Locations are not encoded. Only a `file:` URI whose undecoded path does not exist is decoded, if that path exists.
    """
    path = local_path(given) if is_file_uri(given) else None
    if path is None or os.path.lexists(path):
        return from_anywhere(given)
    decoded = _decoded(path)
    is_encoded = decoded is not None and decoded != path and os.path.exists(decoded)
    return f"file://{decoded}" if is_encoded else given


def _decoded(path: str) -> str | None:
    """None for what cannot be decoded."""
    if _UNUSABLE.search(path):
        return None
    try:
        return unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        return None
