"""Options of reads and streams: names that both accept, and the parsing of values."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tableformat.errors import InvalidArgumentError, UnknownOptionError
from tableformat.metadata.snapshot_choice import to_epoch_ms

BRANCH: Final = "branch"
SNAPSHOT_ID: Final = "snapshot-id"
CONSUMER: Final = "consumer"
"""A named position in the change feed (CF-11)."""
_BOOLEANS: Final = {"true": True, "false": False}
_told: Final[set[str]] = set()
"""Options without effect for which this process has logged a warning."""
logger = logging.getLogger(__name__)


def check_options(options: Iterable[str], known: Sequence[str], *, where: str) -> None:
    """Raise UnknownOptionError for an unknown name. Case is ignored."""
    folded = {name.casefold() for name in known}
    for name in options:
        if name.casefold() not in folded:
            raise UnknownOptionError(name, known, where=where)


def warn_of_idle_options(given: Iterable[str], idle: Sequence[str], *, where: str) -> None:
    """SP-27: log one line to standard error for each option without effect."""
    for name in given:
        if name in idle and name not in _told:
            _told.add(name)
            logger.warning("option %s of %s has no effect here. This is logged only once.", name, where)


def number_of(given: Mapping[str, str], name: str) -> int | None:
    """The option as a number; None if it is not set."""
    text = given.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise InvalidArgumentError(f"option {name} must be a number, not {text!r}.") from error


def moment_of(given: Mapping[str, str], name: str) -> int | None:
    """The option in milliseconds since the epoch, from a number or ISO 8601 text; None if it is not set."""
    text = given.get(name)
    if text is None:
        return None
    return int(text) if text.lstrip("-").isdecimal() else to_epoch_ms(text)


def is_true(given: Mapping[str, str], name: str) -> bool:
    """The option as a boolean; false if it is not set."""
    text = given.get(name, "false")
    if text.casefold() not in _BOOLEANS:
        raise InvalidArgumentError(f"option {name} must be true or false, not {text!r}.")
    return _BOOLEANS[text.casefold()]
