"""Summary properties of every snapshot of this process that identify its program: `engine-name`, `engine-version`,
`app-id`.

The names are from Iceberg's summaries. A process that uses the library sets none. A process of Spark sets the id of its
application, for all commits: statements, procedures, compaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_environment: Final[dict[str, str]] = {}


def set_environment(properties: Mapping[str, str]) -> None:
    """Add these properties to the summary of every later snapshot, unless its commit sets the same name."""
    _environment.clear()
    _environment.update(properties)


def environment() -> Mapping[str, str]:
    return _environment
