"""Parses sizes, durations and timestamps of the command line: `512MB`, `30m`, `7d`, `2026-01-31`."""

from __future__ import annotations

import re
import time
from typing import Final

_AMOUNT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_BYTES: Final = {
    "": 1,
    "b": 1,
    **{unit: 1_000**power for power, unit in enumerate(("kb", "mb", "gb", "tb", "pb"), 1)},
    **{unit: 1_024**power for power, unit in enumerate(("kib", "mib", "gib", "tib", "pib"), 1)},
}
"""Decimal units, as in all output of the command line. Binary units such as `MiB` are accepted too."""
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def parse_size(text: str, option: str) -> int:
    """A size in bytes. Raises InvalidArgumentError with the name of the option."""
    return int(_parse(text, _BYTES, f"{option}: {text!r} is not a size; write bytes or a unit, such as 512MB or 2GiB."))


def parse_duration(text: str, option: str) -> float:
    """A duration in seconds. Raises InvalidArgumentError with the name of the option."""
    return _parse(
        text, _SECONDS, f"{option}: {text!r} is not a duration; write a number and s, m, h, d or w, such as 30m."
    )


def parse_moment(text: str, option: str) -> int:
    """Milliseconds since 1970-01-01 UTC for a time, or for a duration before now. Raises InvalidArgumentError for other
    text."""
    from tableformat.cli.session import local_ms
    from tableformat.errors import InvalidArgumentError

    if _AMOUNT.fullmatch(text):
        wanted = (
            f"{option}: {text!r} is not an age; write a number and s, m, h, d or w, such as 7d, or a time in ISO 8601."
        )
        return int((time.time() - _parse(text, _SECONDS, wanted)) * 1_000)
    try:
        return local_ms(text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{option}: {error} An age is also allowed, such as 7d.") from error


def _parse(text: str, units: dict[str, int], wanted: str) -> float:
    from tableformat.errors import InvalidArgumentError

    found = _AMOUNT.fullmatch(text)
    unit = None if found is None else units.get(found[2].lower())
    if found is None or unit is None:
        raise InvalidArgumentError(wanted)
    return float(found[1]) * unit
