"""Formats numbers, times and values: one wording for the command line and for reprs."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Final

from tableformat.storage.location import one_spelling

NULL: Final = "NULL"
_UNITS: Final = ("KB", "MB", "GB", "TB", "PB")


def count(number: int) -> str:
    """A whole number with thousands separators."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """`1 data file`, `2 data files`; the plural takes an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(byte_count: int) -> str:
    """Bytes in the unit that leaves at most four digits, in steps of 1,000."""
    if byte_count < 1_000:
        return f"{byte_count} B"
    amount = float(byte_count)
    for unit in _UNITS:
        amount /= 1_000
        if round(amount, 1) < 1_000 or unit == _UNITS[-1]:
            return f"{amount:.1f} {unit}"
    raise AssertionError("the last unit takes every size")


def seconds(duration_seconds: float) -> str:
    """A duration: milliseconds below one second."""
    if duration_seconds < 1:
        return f"{duration_seconds * 1_000:.0f} ms"
    return f"{duration_seconds:,.1f} s"


def age(duration_seconds: float) -> str:
    """How long ago, in the unit that leaves the fewest digits."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if duration_seconds >= length:
            return f"{duration_seconds / length:,.1f} {unit}"
    return f"{duration_seconds:.0f} s"


def moment(at: dt.datetime) -> str:
    """ISO 8601 in local time with its zone, to the millisecond: commits of one second stay apart, and the text can be
    given back as a time to travel to."""
    return at.astimezone().isoformat(timespec="milliseconds")


def moment_of_ms(epoch_ms: int) -> str:
    """`moment` for milliseconds since 1970-01-01 UTC."""
    return moment(dt.datetime.fromtimestamp(epoch_ms / 1_000, dt.UTC))


def cell(value: Any) -> str:
    """A value of a row. Control characters are escaped, so that a row stays on its line."""
    match value:
        case None:
            told = NULL
        case str():
            told = "".join(character if character.isprintable() else _escaped(character) for character in value)
        case bytes():
            told = "0x" + value.hex()
        case bool():
            told = str(value).lower()
        case dt.datetime():
            told = value.isoformat(" ")
        case dt.date() | dt.time():
            told = value.isoformat()
        case dict():
            told = "{" + ", ".join(f"{name}: {cell(inner)}" for name, inner in value.items()) + "}"
        case list():
            told = "[" + ", ".join(cell(inner) for inner in value) + "]"
        case Decimal():
            told = f"{value:f}"
        case _:
            told = str(value)
    return told


def literal(value: Any) -> str:
    """A value inside a sentence: text in quotes."""
    return f"'{cell(value)}'" if isinstance(value, str) else cell(value)


def relative(path: str, location: str) -> str:
    """The path of a file below a table's directory; unchanged when it is elsewhere."""
    directory = one_spelling(location).rstrip("/") + "/"
    spelt = one_spelling(path)
    return spelt.removeprefix(directory) if spelt.startswith(directory) else path


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", errors="backslashreplace").decode("ascii")
