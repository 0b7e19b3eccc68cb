"""`UpkeepPolicy`: what a table's properties ask its writers to keep in shape (MT-83)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tableformat.properties import (
    TARGET_FILE_SIZE_BYTES,
    TARGET_FILE_SIZE_BYTES_DEFAULT,
    UPKEEP,
    UPKEEP_FILES_PER_LEVEL,
    UPKEEP_FILES_PER_LEVEL_DEFAULT,
    UPKEEP_MAX_BYTES,
    UPKEEP_MAX_BYTES_DEFAULT,
    UPKEEP_MAX_SECONDS,
    UPKEEP_MAX_SECONDS_DEFAULT,
    UPKEEP_MODES,
    UPKEEP_WRITE_AMPLIFICATION,
    UPKEEP_WRITE_AMPLIFICATION_DEFAULT,
    check_least,
    positive_int,
    positive_number,
    property_one_of,
)

_BASE_SHARE: Final = 1 / 3
"""MT-81: with a larger share a scan reads more rows that are deleted, with a smaller one the base is rewritten more
often. Measured in decision 19."""


class UpkeepMode(Enum):
    """Who does it."""

    OFF = "off"
    """Nobody but a job that is run."""
    WRITER = "writer"
    """The writer, after its commit and before the verb returns."""
    BACKGROUND = "background"
    """A thread of the writer's process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepPolicy:
    """Read from the properties at each commit: another writer may change them."""

    mode: UpkeepMode
    files_per_level: int
    """Data files of one size that are merged into one."""
    max_bytes: int
    """Bytes of data that one round rewrites, at most."""
    max_seconds: int
    """A round begins no merge later than this."""
    write_amplification: float
    """Bytes of data and delete files that writers and upkeep write together, at most, for each byte of the writers."""
    target_file_size_bytes: int
    base_share: float = _BASE_SHARE

    @staticmethod
    def of(properties: Mapping[str, str]) -> UpkeepPolicy:
        """InvalidArgumentError for a value that does not parse, or is less than it can be."""
        check_least(properties)
        return UpkeepPolicy(
            mode=UpkeepMode(property_one_of(properties, UPKEEP, UPKEEP_MODES)),
            files_per_level=positive_int(properties, UPKEEP_FILES_PER_LEVEL, UPKEEP_FILES_PER_LEVEL_DEFAULT),
            max_bytes=positive_int(properties, UPKEEP_MAX_BYTES, UPKEEP_MAX_BYTES_DEFAULT),
            max_seconds=positive_int(properties, UPKEEP_MAX_SECONDS, UPKEEP_MAX_SECONDS_DEFAULT),
            write_amplification=positive_number(
                properties, UPKEEP_WRITE_AMPLIFICATION, UPKEEP_WRITE_AMPLIFICATION_DEFAULT
            ),
            target_file_size_bytes=positive_int(properties, TARGET_FILE_SIZE_BYTES, TARGET_FILE_SIZE_BYTES_DEFAULT),
        )
