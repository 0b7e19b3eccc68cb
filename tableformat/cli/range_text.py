"""Parses ranges of the command line: `[2024-01-01, 2024-02-01)`, `(-inf, 5]`, `VALUE = Asia`, `[(a, 1), (b))`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyiceberg.schema import Schema

from tableformat.cli.values import parse_tuple, parse_value
from tableformat.errors import InvalidArgumentError
from tableformat.range_partitions.model import Bound, point

_OPEN: Final = ("", "-inf", "inf", "+inf")
_VALUE: Final = "VALUE"


def parse_range(text: str, on: Sequence[str], schema: Schema) -> Bound:
    """The range that the text writes, as `partitions` lists it. A tuple, and a text with a comma, is in parentheses or
    in quotes. InvalidArgumentError for anything else."""
    bare = text.strip()
    head, separator, value = bare.partition("=")
    if separator and head.strip().upper() == _VALUE:
        return point(parse_end(value.strip(), on, schema))
    sides = _sides(bare[1:-1]) if bare[:1] in ("[", "(") and bare[-1:] in (")", "]") and len(bare) > 2 else []
    if len(sides) != 2:
        raise InvalidArgumentError(
            f"{text!r} is no range: write '[LOWER, UPPER)', with [ ] for an end that belongs to it, ( ) for one that "
            "does not, nothing for an open one, or 'VALUE = X'."
        )
    lower, upper = (None if side in _OPEN else parse_end(side, on, schema) for side in sides)
    return Bound(lower=lower, upper=upper, lower_inclusive=bare[0] == "[", upper_inclusive=bare[-1] == "]")


def parse_end(text: str, on: Sequence[str], schema: Schema) -> Any:
    """A value of the range column, or a tuple of leading values of several."""
    if len(on) == 1:
        return parse_value(_unquoted(text), on[0], schema, where="the range columns")
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    return parse_tuple(inner, on, schema, where="the range columns")


def _sides(text: str) -> list[str]:
    """The parts between commas that are neither in quotes nor in parentheses."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
        if character == "," and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
