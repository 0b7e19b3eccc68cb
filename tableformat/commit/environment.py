"""What every snapshot of this process says of the program that made it: `engine-name`, `engine-version`, `app-id`.

The names are those of Iceberg's summaries. A process of a library has nothing to say; Spark's says which application it
works for, whoever commits in it: statements, procedures, compaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_environment: Final[dict[str, str]] = {}


def set_environment(properties: Mapping[str, str]) -> None:
    """From now on every snapshot has these in its summary, unless its commit says something else by the same name."""
    _environment.clear()
    _environment.update(properties)


def environment() -> Mapping[str, str]:
    return _environment
