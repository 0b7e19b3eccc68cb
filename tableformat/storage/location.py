"""Locations in metadata: their local paths, absolute forms and equal spellings."""

from __future__ import annotations

import os
import re
from typing import Final

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""At least two characters: one letter and a colon is a Windows drive."""


def local_path(location: str) -> str | None:
    """The path on the local file system; None for a location that needs a FileIO.

    Percent signs are not decoded: partition directories contain them, and Iceberg writers do not decode them.
    """
    scheme = _SCHEME.match(location)
    if scheme is None:
        return location
    if scheme.group() != "file:":
        return None
    path = location[len("file:") :]
    if path.startswith("//"):
        path = path[2:]
        if path.startswith("localhost/"):
            path = path[len("localhost") :]
    return path


def from_anywhere(location: str) -> str:
    """LK-30: a path without a scheme becomes absolute, and `~` is the home directory. Other locations are unchanged."""
    is_bare_path = bool(location) and local_path(location) == location
    return os.path.abspath(os.path.expanduser(location)) if is_bare_path else location


def one_spelling(location: str) -> str:
    """The same text for equal locations: `file:/a`, `file:///a` and `/a`; `s3a://` and `s3://`."""
    path = local_path(location)
    if path is not None:
        return path
    scheme, separator, rest = location.partition("://")
    return f"s3{separator}{rest}" if scheme in ("s3a", "s3n") else location


def place_of(location: str) -> str:
    """The same text for all spellings of a file, with links of directories resolved."""
    path = local_path(location)
    return one_spelling(location) if path is None else os.path.realpath(path)


def is_below(location: str, root: str) -> bool:
    """Whether the location is inside the directory or prefix, in any spelling."""
    return one_spelling(location).startswith(f"{one_spelling(root).rstrip('/')}/")
