"""Formats filters as text that is close to SQL."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    LiteralPredicate,
    Not,
    Or,
    Reference,
    SetPredicate,
    UnboundPredicate,
)
from pyiceberg.expressions.literals import DateLiteral, Literal, TimestampLiteral

from tableformat.filters.bound_filter import operator_of

LISTED_VALUES = 5
"""The number of set members that are written out."""


def filter_text(expression: BooleanExpression) -> str:
    """The expression in one line."""
    if isinstance(expression, AlwaysTrue):
        return "TRUE"
    if isinstance(expression, AlwaysFalse):
        return "FALSE"
    if isinstance(expression, Not):
        return f"NOT ({filter_text(expression.child)})"
    if isinstance(expression, (And, Or)):
        word = "AND" if isinstance(expression, And) else "OR"
        return f" {word} ".join(_operand(side, expression) for side in (expression.left, expression.right))
    assert isinstance(expression, UnboundPredicate), f"{expression!r} is bound"
    return _predicate_text(expression)


def _operand(side: BooleanExpression, above: BooleanExpression) -> str:
    text = filter_text(side)
    return f"({text})" if isinstance(side, (And, Or)) and type(side) is not type(above) else text


def _predicate_text(predicate: UnboundPredicate) -> str:
    assert isinstance(predicate.term, Reference)
    words = f"{predicate.term.name} {operator_of(predicate).value}"
    if isinstance(predicate, LiteralPredicate):
        return f"{words} {_literal_text(predicate.literal)}"
    if isinstance(predicate, SetPredicate):
        texts = sorted(_literal_text(literal) for literal in predicate.literals)
        more = f", ... {len(texts) - LISTED_VALUES} more" if len(texts) > LISTED_VALUES else ""
        return f"{words} ({', '.join(texts[:LISTED_VALUES])}{more})"
    return words


def _literal_text(literal: Literal[Any]) -> str:
    value = literal.value
    if isinstance(literal, DateLiteral):
        return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
    if isinstance(literal, TimestampLiteral):
        return f"TIMESTAMP '{(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)).replace(tzinfo=None)}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value) if isinstance(value, (int, float, Decimal)) else repr(value)
