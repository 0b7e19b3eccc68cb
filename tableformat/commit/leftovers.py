"""Files that a commit which happened had no use for, such as those of its first attempts."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pyiceberg.io import FileIO

from tableformat.storage.storage import delete_if_present

logger = logging.getLogger(__name__)


def remove_leftovers(io: FileIO, locations: Iterable[str]) -> None:
    """CP-51: remove them. What stays is logged, and found by `remove_orphan_files`: the caller must learn that the
    commit happened."""
    for location in locations:
        try:
            delete_if_present(io, location)
        except OSError:
            logger.warning("could not remove %s", location, exc_info=True)
