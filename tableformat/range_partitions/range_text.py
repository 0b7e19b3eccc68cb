"""Parses ranges in text form: `[2024-01-01, 2024-02-01)`, `(-inf, 5]`, `VALUE = Asia`, `[(a, 1), (b))`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from pyiceberg.schema import Schema
from pyiceberg.types import StringType, TimestamptzNanoType, TimestamptzType

from tableformat.errors import InvalidArgumentError
from tableformat.keys.value_text import column_type_of, parse_value
from tableformat.range_partitions.cuts import quoted
from tableformat.range_partitions.model import Bound, point

_OPEN: Final = ("", "-inf", "inf", "+inf")
_VALUE: Final = "VALUE"
_SPECIAL: Final = re.compile(r"""[,()'"]|^$""")
"""Characters that require quotes around a name."""


def parse_range(text: str, on: Sequence[str], schema: Schema) -> Bound:
    """RP-23: the range in the text, in the form that `partitions` lists. A tuple is in parentheses, a text with a comma
    in quotes. Raises InvalidArgumentError for any other text."""
    bare = text.strip()
    head, separator, value = bare.partition("=")
    if separator and head.strip().upper() == _VALUE:
        return point(parse_end(value.strip(), on, schema))
    sides = _parts(bare[1:-1]) if bare[:1] in ("[", "(") and bare[-1:] in (")", "]") and len(bare) > 2 else []
    if len(sides) != 2:
        raise InvalidArgumentError(
            f"{text!r} is not a range. Write '[LOWER, UPPER)' or 'VALUE = X'. [ ] include an end, ( ) exclude it, "
            "and an empty end is open."
        )
    lower, upper = (None if side in _OPEN else parse_end(side, on, schema) for side in sides)
    return Bound(lower=lower, upper=upper, lower_inclusive=bare[0] == "[", upper_inclusive=bare[-1] == "]")


def parse_ranges(text: str, on: Sequence[str], schema: Schema) -> list[Bound]:
    """RP-23: comma-separated ranges: `[2011, 2016), VALUE = 2020`."""
    return [parse_range(each, on, schema) for each in _parts(text, brackets="[(", closing="])")]


def parse_names(text: str) -> list[str]:
    """RP-23: comma-separated columns. A name that contains a comma is in quotes."""
    return [_unquoted(each) for each in _parts(text)]


def names_text(names: Sequence[str]) -> str:
    """RP-23: the names in the form that `parse_names` reads."""
    return ", ".join(quoted(name) if _SPECIAL.search(name) or name != name.strip() else name for name in names)


def parse_ends(text: str, on: Sequence[str], schema: Schema) -> list[Any]:
    """RP-23: comma-separated values, or tuples in parentheses."""
    return [parse_end(each, on, schema) for each in _parts(text)]


def parse_end(text: str, on: Sequence[str], schema: Schema) -> Any:
    """A value of the range column, or a tuple of leading values of several. If the column has time zones, a time
    without a zone is UTC, as in lists of ranges."""
    where = "the range columns"
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") and len(on) > 1 else text
    values = _parts(inner) if len(on) > 1 else [text]
    if len(values) > len(on):
        raise InvalidArgumentError(f"{text!r} has {len(values)} values for the columns ({', '.join(on)}).")
    parsed = tuple(_value(value, name, schema, where=where) for value, name in zip(values, on, strict=False))
    return parsed if len(on) > 1 else parsed[0]


def _value(given: str, name: str, schema: Schema, *, where: str) -> Any:
    text, column_type = _unquoted(given), column_type_of(name, schema, where=where)
    if isinstance(column_type, StringType):
        return text
    if isinstance(column_type, TimestamptzType | TimestamptzNanoType):
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    value = parse_value(text, name, schema, where=where)
    if value is None:
        raise InvalidArgumentError(f"{given!r}: range columns such as {name!r} have no nulls.")
    return value


def _parts(text: str, *, brackets: str = "(", closing: str = ")") -> list[str]:
    """The parts between commas that are neither in quotes nor in brackets. Empty for an empty text."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in brackets + closing:
            depth += 1 if character in brackets else -1
        if character == "," and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts] if text.strip() else []


def _unquoted(text: str) -> str:
    """The text without quotes. A doubled quote inside is one quote."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace(text[0] * 2, text[0])
    return text
