"""Finds the listed files that no metadata names. A file may have several spellings (MT-50).

named     s3://lake/t/data/a    s3://lake/t/data/b    wasb://old/t/data/c
listed    s3a://lake/t/data/a   s3://lake/t/data/d    abfss://new/t/data/c
          named                 unnamed               conflict: another scheme, another authority, the same path
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tableformat.arguments import check_texts
from tableformat.errors import InvalidArgumentError
from tableformat.storage.listing import ListedFile
from tableformat.storage.location import local_path, one_spelling


class PrefixMismatchMode(Enum):
    """How to treat a listed file that metadata names with another scheme or authority."""

    ERROR = "error"
    IGNORE = "ignore"
    """The file stays."""
    DELETE = "delete"
    """The file is different from the named one, and an orphan."""


@dataclass(frozen=True, slots=True)
class EqualPrefixes:
    """Schemes and authorities that the caller declares equal, and the mode for all other differences."""

    schemes: Mapping[str, str] = field(default_factory=dict)
    """A scheme, or several separated by commas, to the scheme that they stand for: {"s3a,s3n": "s3"}."""
    authorities: Mapping[str, str] = field(default_factory=dict)
    mode: PrefixMismatchMode = PrefixMismatchMode.ERROR

    @classmethod
    def of(cls, schemes: Mapping[str, str] | None, authorities: Mapping[str, str] | None, mode: str) -> EqualPrefixes:
        """Raises InvalidArgumentError for an unknown mode and for names that are not text."""
        check_texts(schemes or {}, "equal_schemes")
        check_texts(authorities or {}, "equal_authorities")
        known = [each.value for each in PrefixMismatchMode]
        if mode.lower() not in known:
            raise InvalidArgumentError(f"prefix_mismatch_mode must be one of {', '.join(known)}, not {mode!r}.")
        return cls(schemes or {}, authorities or {}, PrefixMismatchMode(mode.lower()))

    def unnamed(self, listed: Iterable[ListedFile], named: Iterable[str]) -> list[ListedFile]:
        """The listed files that are not among the named ones.

        With `PrefixMismatchMode.ERROR`, raises InvalidArgumentError with the conflicts.
        """
        schemes, authorities = _one_by_one(self.schemes), _one_by_one(self.authorities)
        prefixes: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for location in named:
            scheme, authority, path = _parts(location)
            prefixes[path].add((schemes.get(scheme, scheme), authorities.get(authority, authority)))
        unnamed, conflicts = [], set()
        for file in listed:
            scheme, authority, path = _parts(file.location)
            prefix = (schemes.get(scheme, scheme), authorities.get(authority, authority))
            known = prefixes.get(path)
            if known is None or (prefix not in known and self.mode is PrefixMismatchMode.DELETE):
                unnamed.append(file)
            elif prefix not in known:
                conflicts |= {(_text(each), _text(prefix)) for each in known}
        if conflicts and self.mode is PrefixMismatchMode.ERROR:
            pairs = ", ".join(f"{metadata} and {listing}" for metadata, listing in sorted(conflicts))
            raise InvalidArgumentError(
                f"metadata and listing have the same file paths with different schemes or authorities: {pairs}. "
                "Nothing was removed. Pass equal_schemes and equal_authorities for prefixes that are the same. Or "
                "pass prefix_mismatch_mode 'ignore' to keep these files, or 'delete' to remove them permanently."
            )
        return unnamed


def _one_by_one(equal: Mapping[str, str]) -> dict[str, str]:
    return {each.strip(): to.strip() for names, to in equal.items() for each in names.split(",")}


def _parts(location: str) -> tuple[str, str, str]:
    """Scheme, authority and path. Local files have the scheme `file` and no authority, however they are spelt."""
    spelled = one_spelling(location)
    path = local_path(spelled)
    if path is not None:
        return "file", "", re.sub("/+", "/", path)
    scheme, _, rest = spelled.partition(":")
    if not rest.startswith("//"):
        return scheme, "", rest
    authority, slash, path = rest[2:].partition("/")
    return scheme, authority, slash + path


def _text(prefix: tuple[str, str]) -> str:
    scheme, authority = prefix
    return f"{scheme}://{authority}"
