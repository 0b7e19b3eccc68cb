"""Translates the SQL text of `where=` to a bound filter.

The grammar is sqlglot's DuckDB dialect. A scan can filter by comparisons of one column with literals, under AND, OR and
NOT. PyIceberg's own parser has neither typed literals nor BETWEEN. Negation is carried down during translation, so that
a comparison with NULL becomes false at its position: unknown is not true, with or without a NOT above it.
"""

from __future__ import annotations

import operator as operator_module
import re
from collections.abc import Callable
from typing import Any, ClassVar, Final

import sqlglot
from pyiceberg.schema import Schema
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from tableformat.errors import InvalidPredicateError
from tableformat.filters.bound_filter import (
    FALSE,
    BoundFilter,
    Comparison,
    FilterColumns,
    Operator,
    all_of,
    always,
    any_of,
    compare,
    compare_with_set,
    not_null,
)
from tableformat.filters.literals import LocalTime
from tableformat.filters.sql_constant import Constant, constant_of, fit_constant


class _WhereDialect(DuckDB):
    """DuckDB's dialect, which also accepts names in backticks: Spark and the CHECK constraints of a table use them."""

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]


_LACKING: Final = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*\.(\w+)'>")
_TWO_WORDS: Final = re.compile(r"\w \w+ *[=<>!]")
_COMPARISONS: Final[dict[type[exp.Expr], Operator]] = {
    exp.EQ: Operator.EQUAL,
    exp.NEQ: Operator.NOT_EQUAL,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.LESS_OR_EQUAL,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.GREATER_OR_EQUAL,
}
_PYTHON: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQUAL: operator_module.eq,
    Operator.NOT_EQUAL: operator_module.ne,
    Operator.LESS: operator_module.lt,
    Operator.LESS_OR_EQUAL: operator_module.le,
    Operator.GREATER: operator_module.gt,
    Operator.GREATER_OR_EQUAL: operator_module.ge,
}
_MIRRORED: Final = {
    Operator.LESS: Operator.GREATER,
    Operator.LESS_OR_EQUAL: Operator.GREATER_OR_EQUAL,
    Operator.GREATER: Operator.LESS,
    Operator.GREATER_OR_EQUAL: Operator.LESS_OR_EQUAL,
}


def filter_of_sql(
    text: str, schema: Schema, *, negated: bool = False, local_time: LocalTime | None = None
) -> BoundFilter:
    """The filter that is true for the rows for which the condition is true (false if `negated`), and never for rows for
    which it is unknown. Times without an offset are UTC, or converted by `local_time`. Raises UnknownColumnError and
    InvalidPredicateError."""
    try:
        return _Translation(schema, local_time).condition(_parse(text), negated=negated)
    except RecursionError as error:
        raise InvalidPredicateError("where is nested too deeply; use IN (...) or a join instead.") from error


def _parse(text: str) -> exp.Expr:
    if not text.strip():
        raise InvalidPredicateError("where is empty; leave it out to read every row.")
    try:
        statements = sqlglot.parse(text, dialect=_WhereDialect)
    except sqlglot.errors.SqlglotError as error:
        raise InvalidPredicateError(
            f"where is not a SQL condition: {_plain(error)} In: {text}.{_parse_hint(text)}"
        ) from error
    if len(statements) != 1 or statements[0] is None:
        raise InvalidPredicateError(f"where must be one SQL condition, not several statements: {text}")
    return statements[0]


def _plain(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return f"{error}."
    lacking = _LACKING.match(details[0]["description"])
    what = f"{lacking[1].upper()} lacks an operand" if lacking else details[0]["description"]
    return f"{what} at line {details[0]['line']}, column {details[0]['col']}."


def _parse_hint(text: str) -> str:
    if text.split(maxsplit=1)[0].upper() == "WHERE":
        return " Remove the word WHERE."
    return ' Write a name with spaces in double quotes, as in "my column" = 1.' if _TWO_WORDS.search(text) else ""


class _Translation:
    """One walk over one condition. Every method takes `negated`: whether the number of enclosing NOTs is odd."""

    def __init__(self, schema: Schema, local_time: LocalTime | None) -> None:
        self._columns = FilterColumns(schema)
        self._local_time = local_time
        self._handlers: dict[type[exp.Expr], Callable[[Any, bool], BoundFilter]] = {
            exp.Paren: lambda node, negated: self.condition(node.this, negated),
            exp.Not: lambda node, negated: self.condition(node.this, not negated),
            exp.And: self._and,
            exp.Or: self._or,
            exp.Boolean: lambda node, negated: always(bool(node.this) != negated),
            exp.Null: lambda _node, _negated: FALSE,
            exp.Column: self._boolean_column,
            exp.Dot: self._boolean_column,
            exp.Between: self._between,
            exp.In: self._in,
            exp.Is: self._is,
            exp.NullSafeEQ: self._null_safe,
            exp.NullSafeNEQ: lambda node, negated: self._null_safe(node, not negated),
            exp.Like: self._like,
            exp.Escape: self._escape,
            exp.StartsWith: lambda node, negated: self._prefix(node, node.expression, negated),
            exp.IsNan: self._is_nan,
            **dict.fromkeys(_COMPARISONS, self._comparison),
        }

    def condition(self, node: exp.Expr, negated: bool) -> BoundFilter:
        handler = self._handlers.get(type(node))
        if handler is None:
            raise _unsupported(node)
        return handler(node, negated)

    def _and(self, node: exp.And, negated: bool) -> BoundFilter:
        terms = [self.condition(term, negated) for term in node.flatten()]
        return any_of(terms) if negated else all_of(terms)

    def _or(self, node: exp.Or, negated: bool) -> BoundFilter:
        terms = [self.condition(term, negated) for term in node.flatten()]
        return all_of(terms) if negated else any_of(terms)

    def _boolean_column(self, node: exp.Expr, negated: bool) -> BoundFilter:
        leaf = self._leaf(node, Operator.EQUAL)
        return self._compare(leaf, Constant("boolean", not negated, ""), negated=False)

    def _comparison(self, node: exp.Binary, negated: bool) -> BoundFilter:
        operator = _COMPARISONS[type(node)]
        left, right = node.this, node.expression
        if _is_column(right) and not _is_column(left):
            left, right, operator = right, left, _MIRRORED.get(operator, operator)
        constant = constant_of(right)
        if not _is_column(left):
            return _compare_constants(node, constant_of(left), operator, constant, negated)
        if constant is None:
            raise _unsupported(node)
        return self._compare(self._leaf(left, operator), constant, negated)

    def _between(self, node: exp.Between, negated: bool) -> BoundFilter:
        bounds = [(Operator.GREATER_OR_EQUAL, node.args["low"]), (Operator.LESS_OR_EQUAL, node.args["high"])]
        terms = [self._compare(self._leaf(node.this, op), self._constant(end, node), negated) for op, end in bounds]
        return any_of(terms) if negated else all_of(terms)

    def _in(self, node: exp.In, negated: bool) -> BoundFilter:
        if (
            node.args.get("query") is not None
            or node.args.get("unnest") is not None
            or node.args.get("field") is not None
        ):
            raise _unsupported(node)
        constants = [self._constant(value, node) for value in node.expressions]
        leaf = self._leaf(node.this, Operator.NOT_IN if negated else Operator.IN)
        if not constants:
            return always(negated)
        if negated and any(constant.is_null for constant in constants):
            return FALSE
        column_type = leaf.field.field_type
        values = [
            fit_constant(constant, column_type, leaf.name, self._local_time)
            for constant in constants
            if not constant.is_null
        ]
        return compare_with_set(leaf, values)

    def _is(self, node: exp.Is, negated: bool) -> BoundFilter:
        """IS NULL, IS TRUE, IS FALSE: never unknown, so their negation holds for every other row."""
        if isinstance(node.expression, exp.Null):
            return self._is_null(node.this, negated)
        if not isinstance(node.expression, exp.Boolean):
            raise _unsupported(node)
        leaf = self._leaf(node.this, Operator.EQUAL)
        matches = self._compare(leaf, Constant("boolean", bool(node.expression.this), ""), negated)
        return any_of([matches, self._is_null(node.this, False)]) if negated else matches

    def _null_safe(self, node: exp.Binary, negated: bool) -> BoundFilter:
        """IS NOT DISTINCT FROM a literal."""
        if not _is_column(node.this):
            raise _unsupported(node)
        constant = self._constant(node.expression, node)
        if constant.is_null:
            return self._is_null(node.this, negated)
        matches = self._compare(self._leaf(node.this, Operator.EQUAL), constant, negated)
        return any_of([matches, self._is_null(node.this, False)]) if negated else matches

    def _like(self, node: exp.Like, negated: bool) -> BoundFilter:
        return self._like_pattern(node, None, negated)

    def _escape(self, node: exp.Escape, negated: bool) -> BoundFilter:
        escape = constant_of(node.expression)
        if not isinstance(node.this, exp.Like) or escape is None or escape.kind != "string" or len(escape.value) != 1:
            raise _unsupported(node)
        return self._like_pattern(node.this, escape.value, negated)

    def _like_pattern(self, node: exp.Like, escape: str | None, negated: bool) -> BoundFilter:
        negated = negated != bool(node.args.get("negate"))
        pattern = self._constant(node.expression, node)
        if pattern.is_null:
            return FALSE
        if pattern.kind != "string":
            raise _unsupported(node)
        literal, is_prefix = _like_literal(pattern.value, escape, node)
        operator = Operator.STARTS_WITH if is_prefix else Operator.EQUAL
        if is_prefix and not literal:
            return FALSE if negated else not_null(self._leaf(node.this, operator))
        return self._compare(self._leaf(node.this, operator), Constant("string", literal, pattern.text), negated)

    def _prefix(self, node: exp.Expr, prefix: exp.Expr, negated: bool) -> BoundFilter:
        return self._compare(self._leaf(node.this, Operator.STARTS_WITH), self._constant(prefix, node), negated)

    def _is_nan(self, node: exp.IsNan, negated: bool) -> BoundFilter:
        leaf = self._leaf(node.this, Operator.IS_NAN)
        if not leaf.is_float:
            raise InvalidPredicateError(
                f"isnan({leaf.name}) needs a float or double column, but {leaf.name!r} is of type "
                f"{leaf.field.field_type}."
            )
        return leaf.negated() if negated else leaf

    def _is_null(self, node: exp.Expr, negated: bool) -> BoundFilter:
        leaf = self._leaf(node, Operator.NOT_NULL if negated else Operator.IS_NULL)
        return leaf if leaf.is_nullable else always(negated)

    def _compare(self, leaf: Comparison, constant: Constant, negated: bool) -> BoundFilter:
        if constant.is_null:
            return FALSE
        fitted = fit_constant(constant, leaf.field.field_type, leaf.name, self._local_time)
        return compare(leaf.negated() if negated else leaf, fitted)

    def _leaf(self, node: exp.Expr, operator: Operator) -> Comparison:
        """The column of a comparison. The caller adds the literals."""
        if not isinstance(node, (exp.Column, exp.Dot)) or not _is_column(node):
            raise _unsupported(node)
        return self._columns.leaf(".".join(part.name for part in node.parts), operator)

    def _constant(self, node: exp.Expr, within: exp.Expr) -> Constant:
        constant = constant_of(node)
        if constant is None:
            raise _unsupported(within)
        return constant


def _is_column(node: exp.Expr) -> bool:
    if isinstance(node, exp.Dot):
        return _is_column(node.this) and isinstance(node.expression, exp.Identifier)
    return isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)


def _like_literal(pattern: str, escape: str | None, node: exp.Expr) -> tuple[str, bool]:
    """The text before the wildcard, and whether there is one. Column bounds can only evaluate `text` and `text%`."""
    literal: list[str] = []
    characters = iter(enumerate(pattern))
    for position, character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                raise InvalidPredicateError(
                    f"the pattern of {node.sql(dialect='duckdb')} ends with its escape character."
                )
            literal.append(following[1])
        elif character == "%" and position == len(pattern) - 1:
            return "".join(literal), True
        elif character in "%_":
            raise InvalidPredicateError(
                f"{node.sql(dialect='duckdb')}: a scan supports only LIKE 'text%', with one % at the end. For other "
                "patterns, query the dataset with DuckDB."
            )
        else:
            literal.append(character)
    return "".join(literal), False


def _compare_constants(
    node: exp.Expr, left: Constant | None, operator: Operator, right: Constant | None, negated: bool
) -> BoundFilter:
    """Conditions without a column, such as `1 = 1` in generated SQL."""
    if left is None or right is None:
        raise _unsupported(node)
    if left.is_null or right.is_null:
        return FALSE
    if left.kind != right.kind or left.kind not in ("number", "string", "boolean"):
        raise _unsupported(node)
    return always(_PYTHON[operator](left.value, right.value) != negated)


def _unsupported(node: exp.Expr) -> InvalidPredicateError:
    return InvalidPredicateError(
        f"a scan cannot filter by {node.sql(dialect='duckdb')!r}. Compare a column with literals by =, <>, <, <=, >, "
        ">=, BETWEEN, IN, LIKE 'text%', IS NULL or isnan(), and join these by AND, OR and NOT. For anything else, "
        f"query the dataset with DuckDB.{_quotes_hint(node)}"
    )


def _quotes_hint(node: exp.Expr) -> str:
    """For text in double quotes, which are strings in Python and Spark."""
    columns = list(node.find_all(exp.Column))
    if len(columns) < 2 or not any(column.this.quoted for column in columns[1:]):
        return ""
    return " Double quotes enclose the name of a column; text is written in single quotes."
