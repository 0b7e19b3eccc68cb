"""New names for files that jobs could remove under their former names (LK-31).

    given   <table>/data/p=1/a.parquet              inside a directory from which jobs remove files
    named   <table>/data/p=1/00000-<uuid>-added-<origin>.parquet

All new names of one file have the same origin, so a file that is added twice is recognized.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Final

from tableformat.storage.location import place_of

_KIND: Final = "-added-"
_NAME: Final = re.compile(rf".*{_KIND}([0-9a-f]{{16}})\.parquet", re.DOTALL)
_ORIGIN_BYTES: Final = 8


def suffix_of(origin: str) -> str:
    """The end of the name, before the extension."""
    return f"{_KIND}{origin}"


def origin_of(location: str, table_location: str) -> str:
    """16 hexadecimal digits for the file: from its name if it has them, otherwise from its path, which is relative if
    it is inside the table."""
    named = _named_origin(location)
    if named is not None:
        return named
    place = place_of(location).removeprefix(f"{place_of(table_location).rstrip('/')}/")
    return hashlib.blake2b(place.encode(errors="surrogatepass"), digest_size=_ORIGIN_BYTES).hexdigest()


def with_origin_in(locations: Iterable[str], origins: Collection[str]) -> list[str]:
    """LK-31: the locations whose names have one of the origins."""
    return [location for location in locations if _KIND in location and _named_origin(location) in origins]


def origins_in(locations: Iterable[str]) -> frozenset[str]:
    """The origins in the names of the locations."""
    found = (_named_origin(location) for location in locations if _KIND in location)
    return frozenset(origin for origin in found if origin is not None)


def _named_origin(location: str) -> str | None:
    match = _NAME.fullmatch(location.rpartition("/")[2])
    return None if match is None else match[1]
