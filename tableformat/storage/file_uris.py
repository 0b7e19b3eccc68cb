"""`file:` URIs (RFC 8089) that users give for paths of this machine (LK-32)."""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from tableformat.errors import InvalidArgumentError
from tableformat.storage.location import from_anywhere, local_path

_PREFIX: Final = re.compile(r"file:(//(localhost(?=/))?)?", re.IGNORECASE)
_UNUSABLE: Final = re.compile(r"%2f|%00", re.IGNORECASE)
"""An encoded separator inside of a name, or the end of a string. File names have neither."""


def is_file_uri(text: str) -> bool:
    return text[:5].lower() == "file:"


def absolute_path(path: str) -> str:
    """The absolute path, or the path in a `file:` URI (LK-32), so that another process resolves it in the same way."""
    return path_of_file_uri(path) if is_file_uri(path) else os.path.abspath(os.path.expanduser(path))


def path_of_file_uri(uri: str) -> str:
    """LK-32: the decoded path of `file:/lake`, `file:///my%20lake` or `file://localhost/lake`.

    Raises InvalidArgumentError for a path that is not absolute, for another machine, and for bytes that are not a path.
    It is also raised if a file with the undecoded name exists, because the URI may mean that file.
    """
    path = _PREFIX.sub("", uri, count=1)
    if not path.startswith("/") or path.startswith("//"):
        raise InvalidArgumentError(
            f"{uri!r} is not an absolute path on this machine. Pass a path, or file:///path/to/lake."
        )
    decoded = _decoded(path)
    if decoded is None:
        raise InvalidArgumentError(
            f"{uri!r} has percent-encoded bytes that are not allowed in a path: %2F, %00, or text that is not UTF-8. "
            "Pass the path instead of a URI."
        )
    if decoded != path and os.path.lexists(path):
        raise InvalidArgumentError(
            f"{uri!r} is the URI of {decoded!r}, but {path!r} also exists. Pass the intended path instead of a URI."
        )
    return decoded


def location_of_existing(given: str) -> str:
    """LK-30, LK-32: the location of an existing file or directory that a user names.

    Locations are not encoded. Only a `file:` URI whose undecoded path does not exist is decoded, if that path exists.
    """
    path = local_path(given) if is_file_uri(given) else None
    if path is None or os.path.lexists(path):
        return from_anywhere(given)
    decoded = _decoded(path)
    is_encoded = decoded is not None and decoded != path and os.path.exists(decoded)
    return f"file://{decoded}" if is_encoded else given


def _decoded(path: str) -> str | None:
    """The decoded path; None if it cannot be decoded."""
    if _UNUSABLE.search(path):
        return None
    try:
        return unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        return None
