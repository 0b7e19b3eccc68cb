"""The names that files get in a table whose jobs might remove them under their former names (LK-31).

    given   <table>/data/p=1/a.parquet              inside of a directory that jobs remove files from
    named   <table>/data/p=1/00000-<uuid>-added-<origin>.parquet

The origin is the same for each name that one file gets, so a file that is added twice is recognized.
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
    """What the name of a file ends with, before its extension."""
    return f"{_KIND}{origin}"


def origin_of(location: str, table_location: str) -> str:
    """16 hexadecimal digits for the file: from its name where that has them, or else from its place, within the table
    where it is inside of it."""
    named = _named_origin(location)
    if named is not None:
        return named
    place = place_of(location).removeprefix(f"{place_of(table_location).rstrip('/')}/")
    return hashlib.blake2b(place.encode(errors="surrogatepass"), digest_size=_ORIGIN_BYTES).hexdigest()


def with_origin_in(locations: Iterable[str], origins: Collection[str]) -> list[str]:
    """LK-31: those of the locations whose names have one of the origins."""
    return [location for location in locations if _KIND in location and _named_origin(location) in origins]


def origins_in(locations: Iterable[str]) -> frozenset[str]:
    """The origins in the names of the locations."""
    found = (_named_origin(location) for location in locations if _KIND in location)
    return frozenset(origin for origin in found if origin is not None)


def _named_origin(location: str) -> str | None:
    match = _NAME.fullmatch(location.rpartition("/")[2])
    return None if match is None else match[1]
