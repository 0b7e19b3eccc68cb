"""Formats numbers, times and values in the same way for the command line and for reprs."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Final

from tableformat.markup.figures import age, count, counted, seconds, size, told_figures
from tableformat.storage.location import one_spelling

__all__ = [
    "NULL",
    "age",
    "cell",
    "count",
    "counted",
    "literal",
    "moment",
    "moment_of_ms",
    "relative",
    "seconds",
    "size",
    "told_figures",
]

NULL: Final = "NULL"


def moment(at: dt.datetime) -> str:
    """ISO 8601 in local time with its zone, to the millisecond. Commits within a second stay distinct, and the text can
    be used for time travel."""
    return at.astimezone().isoformat(timespec="milliseconds")


def moment_of_ms(epoch_ms: int) -> str:
    """`moment` for milliseconds since 1970-01-01 UTC."""
    return moment(dt.datetime.fromtimestamp(epoch_ms / 1_000, dt.UTC))


def cell(value: Any) -> str:
    """A value of a row. Control characters are escaped, so that a row stays on one line."""
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
    """The path of a file below a table's directory; unchanged for files elsewhere."""
    directory = one_spelling(location).rstrip("/") + "/"
    spelt = one_spelling(path)
    return spelt.removeprefix(directory) if spelt.startswith(directory) else path


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", errors="backslashreplace").decode("ascii")
