"""Finds the specification: in a wheel next to this library, in a clone at the top of the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tableformat.errors import NotFoundError

_PACKAGE: Final = Path(__file__).resolve().parents[1]
RULE_DOCUMENTS: Final = ("delete-application.md", "range-deletes.md", "range-partitions.md")
"""The documents whose rules decide which rows a table has."""


def specification_directory(corpus: Path | None = None) -> Path:
    """The directory with the documents of rules and, in `corpus`, the cases; or the parent of the given `corpus`.

    Raises NotFoundError if neither a wheel nor a clone has it.
    """
    candidates = [corpus.resolve().parent] if corpus is not None else [_PACKAGE / "specs", _PACKAGE.parent / "specs"]
    for directory in candidates:
        if (directory / RULE_DOCUMENTS[0]).is_file():
            return directory
    raise NotFoundError(
        f"no specification at {' or '.join(map(str, candidates))}: its rule documents are expected next to the "
        "directory of cases. Pass a directory of cases that has them, such as specs/corpus of a clone, with --corpus."
    )
