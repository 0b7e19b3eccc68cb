"""Locations of metadata: the local path of one, the absolute one, and one spelling for equal ones."""

from __future__ import annotations

import os
import re
from typing import Final

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""Two characters at least: one letter and a colon is a Windows drive."""


def local_path(location: str) -> str | None:
    """The path on this machine's file system, or None for a location that needs a FileIO.

    Percent signs are taken as they stand: partition directories carry them and Iceberg writers do not decode them.
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
    """LK-30: a path without a scheme as an absolute one, `~` the home directory; other locations as they are."""
    is_bare_path = bool(location) and local_path(location) == location
    return os.path.abspath(os.path.expanduser(location)) if is_bare_path else location


def one_spelling(location: str) -> str:
    """The same text for locations that mean the same place: `file:/a`, `file:///a` and `/a`; `s3a://` and `s3://`."""
    path = local_path(location)
    if path is not None:
        return path
    scheme, separator, rest = location.partition("://")
    return f"s3{separator}{rest}" if scheme in ("s3a", "s3n") else location


def place_of(location: str) -> str:
    """One text for a file, however it is spelt and through whatever links of directories."""
    path = local_path(location)
    return one_spelling(location) if path is None else os.path.realpath(path)


def is_below(location: str, root: str) -> bool:
    """Whether the location is inside of the directory or prefix, however both are spelt."""
    return one_spelling(location).startswith(f"{one_spelling(root).rstrip('/')}/")
