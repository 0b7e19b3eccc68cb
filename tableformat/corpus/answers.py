"""A reader's output for a table, and the verdict on it."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from pyiceberg.schema import Schema
from pyiceberg.types import FloatType

from tableformat.corpus.write import WrittenCase
from tableformat.testing.json_values import rows_from_json, schema_from_json
from tableformat.testing.key_order import fingerprint

_SHOWN_ROWS: Final = 3
_SHOWN_CHARACTERS: Final = 300


class Verdict(StrEnum):
    """The verdict on a reader's answer for a table."""

    RIGHT = "right"
    """The expected rows, or an error if the table must be refused."""
    REFUSED = "refused"
    """An error, although the table can be read."""
    WRONG = "wrong"
    """Other rows, without an error."""
    CRASHED = "crashed"
    """The process ended or hung before it answered."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One line of a reader's output: rows, or the text of an error."""

    rows: Sequence[Any] | None = None
    error: str | None = None
    reader: str | None = None
    """Name and version, if the reader states them."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A verdict and its reason."""

    verdict: Verdict
    detail: str | None = None
    """The error, or the missing and the unexpected rows; None for the right rows."""


def parse_answer(line: str) -> Answer | None:
    """The answer in a line of standard output; None for any other line."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if isinstance(found.get("error"), str):
        return Answer(error=found["error"], reader=found.get("reader"))
    return Answer(rows=found["rows"], reader=found.get("reader")) if isinstance(found.get("rows"), list) else None


def judge(case: WrittenCase, answer: Answer) -> CaseResult:
    """The verdict on an answer."""
    if answer.rows is None:
        refusal = Verdict.RIGHT if case.rows is None else Verdict.REFUSED
        return CaseResult(refusal, shortened(answer.error or ""))
    if case.rows is None:
        return CaseResult(Verdict.WRONG, f"{len(answer.rows)} rows, and no error")
    schema = schema_from_json(case.columns)
    names = list(case.columns)
    columns = next((list(row) for row in answer.rows if not _has_columns(row, names)), None)
    if columns is not None:
        return CaseResult(Verdict.WRONG, shortened(f"a row has the columns {columns}, not {names}"))
    try:
        found = _counted(answer.rows, schema, names)
    except (ValueError, TypeError, ArithmeticError, AttributeError) as error:
        return CaseResult(Verdict.WRONG, shortened(f"a value does not have the type of its column: {error!r}"))
    expected = _counted(case.rows, schema, names)
    if found == expected:
        return CaseResult(Verdict.RIGHT)
    return CaseResult(Verdict.WRONG, _difference(expected, found))


def shortened(text: str) -> str:
    """The text on one line, truncated if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}…"


def _has_columns(row: Any, names: Sequence[str]) -> bool:
    return isinstance(row, Mapping) and sorted(row) == sorted(names)


def _counted(rows: Sequence[Any], schema: Schema, names: Sequence[str]) -> Counter[tuple[Any, ...]]:
    singles = [field.name for field in schema.fields if isinstance(field.field_type, FloatType)]
    typed = rows_from_json(rows, schema)
    for row in typed:
        row.update({name: float(np.float32(row[name])) for name in singles if row[name] is not None})
    return fingerprint(typed, names)


def _difference(expected: Counter[tuple[Any, ...]], found: Counter[tuple[Any, ...]]) -> str:
    parts = [("missing", expected - found), ("too many", found - expected)]
    return "; ".join(f"{name}: {_shown(rows)}" for name, rows in parts if rows)


def _shown(rows: Counter[tuple[Any, ...]]) -> str:
    texts = sorted(f"({', '.join(_plain(value) for value in row)})" for row in rows.elements())
    more = f" and {len(texts) - _SHOWN_ROWS} more" if len(texts) > _SHOWN_ROWS else ""
    return ", ".join(texts[:_SHOWN_ROWS]) + more


def _plain(value: Any) -> str:
    """A value of a fingerprint, which begins with its kind, as readable text."""
    kind, inner = value
    if kind == "float" and isinstance(inner, bytes):
        return str(struct.unpack(">d", inner)[0])
    if isinstance(inner, bytes):
        return inner.hex()
    return "null" if inner is None else str(inner)
