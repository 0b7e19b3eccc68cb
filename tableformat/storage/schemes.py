"""Refuses locations of a kind that no FileIO opens, with the list of known kinds."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlparse

from pyiceberg.io import PY_IO_IMPL, SCHEMA_TO_FILE_IO

from tableformat.errors import InvalidArgumentError, nearest_hint


def check_scheme(location: str, properties: Mapping[str, str]) -> None:
    """Raise InvalidArgumentError for a location whose scheme no FileIO knows, unless `properties` name a FileIO."""
    if PY_IO_IMPL not in properties and is_unknown(location):
        raise unknown_scheme(location)


def is_unknown(location: str) -> bool:
    scheme = urlparse(location).scheme
    # One letter is a Windows drive.
    return len(scheme) > 1 and scheme not in SCHEMA_TO_FILE_IO


def unknown_scheme(location: str) -> InvalidArgumentError:
    """The error for such a location."""
    scheme = urlparse(location).scheme
    hint = nearest_hint(scheme, sorted(SCHEMA_TO_FILE_IO))
    return InvalidArgumentError(
        f"{location!r:.200}: no FileIO is known for {scheme}: URIs.{hint} The property {PY_IO_IMPL} selects another "
        "FileIO."
    )
