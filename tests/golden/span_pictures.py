"""Spans as pictures: one line a span, its sequence number and then the stretch from letter to letter, drawn in place.

3:  b-d        before("b") .. before("d") with number 3; each letter stands in its own column, "a" in the first
5: a           an empty span (before("a") .. before("a")) is a single letter
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.types import StringType

from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import SpanArray, span_of_bounds
from tableformat.keys.key_columns import KeyColumns

KEY = KeyColumns((1,), ("k",), (StringType(),))
_LINE = re.compile(r"^(\d+): ( *)([a-z])(?:-*([a-z]))?$")


@dataclass(frozen=True, slots=True)
class Case:
    """One text file: spans, a line naming the operation, the result."""

    spans: SpanArray
    operation: str
    arguments: dict[str, str]
    result: str


def read_case(path: Path) -> Case:
    drawn, separator, result = path.read_text().partition("\n=> ")
    assert separator, f"{path.name} names no operation"
    operation_line, _, result = result.partition("\n")
    operation, *arguments = operation_line.split()
    pairs = dict(argument.split("=") for argument in arguments)
    return Case(parse_spans(drawn), operation, pairs, result)


def write_result(path: Path, result: str) -> None:
    drawn, _, rest = path.read_text().partition("\n=> ")
    path.write_text(f"{drawn}\n=> {rest.partition(chr(10))[0]}\n{result}")


def parse_spans(drawn: str) -> SpanArray:
    parsed = []
    for line in drawn.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        found = _LINE.match(line.rstrip())
        assert found, f"no span: {line!r}"
        number, indent, lower, upper = found.groups()
        assert len(indent) == ord(lower) - ord("a"), f"{lower!r} is not in its column: {line!r}"
        assert upper is None or len(line.rstrip()) == len(number) + 3 + ord(upper) - ord("a"), f"drawn askew: {line!r}"
        parsed.append(span_of_bounds(KEY, (lower,), (upper or lower,)).with_sequence_number(int(number)))
    return SpanArray.concat(parsed)


def draw_spans(spans: SpanArray) -> str:
    assert spans.sequence_numbers is not None
    lines = [
        f"{number}: {' ' * (ord(lower) - ord('a'))}{lower}{'-' * (ord(upper) - ord(lower) - 1)}{upper}"
        for lower, upper, number in zip(
            _letters(spans.lower), _letters(spans.upper), spans.sequence_numbers, strict=True
        )
    ]
    return "".join(f"{line}\n" for line in lines) or "nothing\n"


def _letters(cuts: CutArray) -> list[str]:
    letters: list[str] = cuts.columns[0].to_pylist()
    return letters
