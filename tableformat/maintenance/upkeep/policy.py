"""`UpkeepPolicy`: the upkeep settings in a table's properties (MT-83)."""

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
"""MT-81: with a larger share, a scan reads more deleted rows; with a smaller one, the base is rewritten more often.
Measured in decision 19."""


class UpkeepMode(Enum):
    """Where upkeep runs."""

    OFF = "off"
    """Only when a job is called."""
    WRITER = "writer"
    """In the writer, after its commit and before the operation returns."""
    BACKGROUND = "background"
    """In a thread of the writer's process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepPolicy:
    """The settings, read from the properties at each commit because another writer may change them."""

    mode: UpkeepMode
    files_per_level: int
    """The number of data files of one size that are merged into one."""
    max_bytes: int
    """The most bytes of data that one round rewrites."""
    max_seconds: int
    """The time after which a round begins no merge."""
    write_amplification: float
    """The most bytes of data and delete files that writers and upkeep write together, for each byte of the writers."""
    target_file_size_bytes: int
    base_share: float = _BASE_SHARE

    @staticmethod
    def of(properties: Mapping[str, str]) -> UpkeepPolicy:
        """Raises InvalidArgumentError for a value that cannot be parsed or is too small."""
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
