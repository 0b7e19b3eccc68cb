"""Removes files that a successful commit did not use, such as files of its earlier attempts."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pyiceberg.io import FileIO

from tableformat.storage.storage import delete_if_present

logger = logging.getLogger(__name__)


def remove_leftovers(io: FileIO, locations: Iterable[str]) -> None:
    """CP-51: remove the files. A failure is logged, not raised, because the caller must learn that the commit
    succeeded. `remove_orphan_files` finds the remaining files."""
    for location in locations:
        try:
            delete_if_present(io, location)
        except OSError:
            logger.warning("could not remove %s", location, exc_info=True)
