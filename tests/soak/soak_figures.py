"""The figures of a test run; `run_soak.py` adds them up over all of its rounds."""

from __future__ import annotations

import atexit
import json
import os
from collections import Counter
from typing import Final

FIGURES_FILE: Final = "SOAK_FIGURES"
"""The environment variable that names the file; without it nothing is written."""
SEED: Final = "SOAK_SEED"
"""The environment variable with the number that decides all that is drawn at random outside of Hypothesis."""

_counted: Final[Counter[str]] = Counter()


def count(what: str, number: int = 1) -> None:
    """Add to what this process did, such as "operations"."""
    _counted[what] += number


def soak_seed(default: str | None = None) -> str | None:
    """The seed of this round, or None for a new random seed each time."""
    return os.environ.get(SEED, default)


def _write() -> None:
    path = os.environ.get(FIGURES_FILE)
    if path and _counted:
        with open(path, "a") as file:
            file.write(json.dumps(_counted) + "\n")


atexit.register(_write)
