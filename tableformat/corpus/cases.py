"""The cases of the corpus, once for every format version in which the table can be made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from tableformat.corpus.specification import specification_directory
from tableformat.errors import InvalidArgumentError, nearest_hint

FORMAT_VERSIONS: Final = (2, 3)
_VERSION: Final = "format-version"


@dataclass(frozen=True, slots=True)
class CorpusCase:
    """A case in one format version."""

    id: str
    """`equality-deletes/null-matches-null-and-nothing-else.v2`: file, title, version."""
    group: str
    """The name of its file, without the suffix."""
    format_version: int
    is_upgraded: bool
    """Whether the table is created as version 2 and upgraded. Version 3 accepts no new position delete files, but keeps
    the existing ones of a table."""
    stated: Mapping[str, Any]
    """The case in its file."""

    @property
    def title(self) -> str:
        return str(self.stated["title"])

    @property
    def is_unreadable(self) -> bool:
        """Whether a reader has to refuse the table."""
        return "read_error" in self.stated

    def to_build(self) -> dict[str, Any]:
        """The case with the table's format version added to its properties."""
        made = FORMAT_VERSIONS[0] if self.is_upgraded else self.format_version
        return {**self.stated, "properties": {**(self.stated.get("properties") or {}), _VERSION: str(made)}}


def read_cases(corpus: Path | None = None) -> list[CorpusCase]:
    """The cases of a directory such as specs/corpus; by default of the installed corpus.

    Cases with damaged range delete files are left out: their manifest entries carry the spans (RD-13), so a reader that
    does not need the file reads the table correctly.
    """
    directory = corpus if corpus is not None else specification_directory() / "corpus"
    files = sorted(directory.glob("*.json"))
    if not files:
        raise InvalidArgumentError(
            f"no cases in {directory}: it has no .json files. A clone of the repository has them in specs/corpus."
        )
    found = [
        case for file in files for stated in json.loads(file.read_text("utf-8")) for case in _versions(file, stated)
    ]
    return [case for case in found if not any(step.get("damage") == "range" for step in case.stated["steps"])]


class Identified(Protocol):
    """An object with the id of a case."""

    @property
    def id(self) -> str: ...


AnyCase = TypeVar("AnyCase", bound=Identified)


def choose_cases(cases: Sequence[AnyCase], wanted: Sequence[str]) -> list[AnyCase]:
    """The cases whose id contains one of the texts; all cases without a text. Raises InvalidArgumentError for a text
    that no id contains."""
    for text in wanted:
        if not any(text in case.id for case in cases):
            raise InvalidArgumentError(f"no case {text!r}.{nearest_hint(text, [case.id for case in cases])}")
    return [case for case in cases if not wanted or any(text in case.id for text in wanted)]


def _versions(file: Path, stated: Mapping[str, Any]) -> Iterator[CorpusCase]:
    only = (stated.get("properties") or {}).get(_VERSION)
    # In version 3, operations delete with vectors, so a position delete file to damage does not exist.
    versions = (
        FORMAT_VERSIONS[:1] if any(step.get("damage") == "position" for step in stated["steps"]) else FORMAT_VERSIONS
    )
    for version in versions:
        if only is None or int(only) == version:
            yield CorpusCase(
                id=f"{file.stem}/{slug(stated['title'])}.v{version}",
                group=file.stem,
                format_version=version,
                is_upgraded=version > FORMAT_VERSIONS[0] and _has_raw_positions(stated),
                stated=stated,
            )


def _has_raw_positions(stated: Mapping[str, Any]) -> bool:
    return any("positions" in item for step in stated["steps"] for item in step.get("raw", ()))


def slug(title: str) -> str:
    """A title as part of a path: its words in lower case, joined by hyphens."""
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))
