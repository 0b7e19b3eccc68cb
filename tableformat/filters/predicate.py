"""Converts the argument `where=` to a PyIceberg expression.

Four front ends produce the bound filter, one for each language: SQL text in `sql_predicate.py`, pyarrow's serialized
expressions in `arrow_filter.py`, Polars expressions in `polars_filter.py`, and Spark's predicates in
`spark_ext/service/wire/expressions.py`. The SQL parser is imported with the first text, because the import takes a
twentieth of the time that a process needs to load a table.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, Not, Or
from pyiceberg.schema import Schema

from tableformat.errors import InvalidPredicateError, UnknownColumnError
from tableformat.filters.arrow_filter import translate
from tableformat.filters.bound_filter import BoundFilter, bind_filter, to_expression
from tableformat.filters.literals import LocalTime
from tableformat.filters.polars_filter import from_polars
from tableformat.metadata.arrow_schema import arrow_schema


@runtime_checkable
class PolarsExpression(Protocol):
    """A `polars.Expr`, without importing Polars."""

    @property
    def meta(self) -> Any: ...


Where: TypeAlias = str | BooleanExpression | pc.Expression | PolarsExpression
"""The types of `where=`: SQL text, or an expression of PyIceberg, `pyarrow.compute` or Polars."""


def is_filter(given: object) -> bool:
    """Whether an argument is a filter, not rows or a prefix."""
    if isinstance(given, str | BooleanExpression | pc.Expression):
        return True
    return type(given).__module__.partition(".")[0] == "polars" and type(given).__name__ == "Expr"


_NESTING_MAX: Final = 100
_TOO_DEEP: Final = "where is nested too deeply; use IN (...) or a join instead."


def parse_where(where: Where | None, schema: Schema, *, local_time: LocalTime | None = None) -> BooleanExpression:
    """The filter as an expression over the names of `schema`; None means no filter.

    SQL text becomes an expression without NOT whose literals are values of their columns' types. A PyIceberg expression
    is checked and returned unchanged. Polars and pyarrow expressions are translated. Rows match as described in
    `bound_filter`, except that pyarrow does not compare NaN as the greatest number. Times without an offset in SQL text
    are UTC, or converted by `local_time`.

    Raises UnknownColumnError with the nearest column, and InvalidPredicateError with the part that cannot be a filter
    and the reason.
    """
    if where is None:
        return AlwaysTrue()
    try:
        expression = _parsed(where, schema, local_time)
        if _is_deep(expression):
            expression = to_expression(bind_filter(expression, schema))  # Chains of one operator become flat.
        is_deep = _is_deep(expression)
    except RecursionError as error:
        raise InvalidPredicateError(_TOO_DEEP) from error
    if is_deep:
        raise InvalidPredicateError(_TOO_DEEP)
    return expression


def _is_deep(expression: BooleanExpression) -> bool:
    """Whether the operators are nested too deeply for the functions that walk over a filter."""
    level = [expression]
    for _ in range(_NESTING_MAX):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return False
    return True


def _parts(expression: BooleanExpression) -> tuple[BooleanExpression, ...]:
    if isinstance(expression, And | Or):
        return expression.left, expression.right
    return (expression.child,) if isinstance(expression, Not) else ()


def _parsed(where: Where, schema: Schema, local_time: LocalTime | None) -> BooleanExpression:
    if isinstance(where, pc.Expression):
        return to_expression(_from_arrow(where, schema))
    if not isinstance(where, str | BooleanExpression):
        if type(where).__module__.partition(".")[0] != "polars":
            raise InvalidPredicateError(
                "where must be SQL text or a PyIceberg, pyarrow.compute or Polars expression, not "
                f"{type(where).__name__}."
            )
        where = from_polars(where, schema)
    if isinstance(where, BooleanExpression):
        bind_filter(where, schema)
        return where
    return to_expression(_from_sql(where, schema, local_time=local_time))


def parse_false_where(where: Where, schema: Schema) -> BoundFilter:
    """The filter that is true for the rows for which the condition `where` is false. It is not true if the condition is
    unknown.

    The negation of `parse_where` would be wrong: a filter from SQL text does not distinguish false and unknown. Raises
    the same errors.
    """
    expression = parse_where(where, schema)
    if isinstance(where, str):
        return _from_sql(where, schema, negated=True)
    if isinstance(where, BooleanExpression):
        return bind_filter(Not(expression), schema)
    if isinstance(where, pc.Expression) or type(where).__module__.partition(".")[0] == "polars":
        return bind_filter(parse_where(~where, schema), schema)  # type: ignore[operator]
    return bind_filter(expression, schema)


def _from_arrow(expression: pc.Expression, schema: Schema) -> BoundFilter:
    """Raise InvalidPredicateError if the filter would match other rows than the expression."""
    translation = translate(expression, schema, arrow_schema(schema))
    names = [field.name for field in schema.fields]
    for name in translation.columns or ():
        if name not in names:
            raise UnknownColumnError(name, names, where="the where= of pyarrow")
    if not translation.is_exact:
        raise InvalidPredicateError(
            f"the pyarrow expression {expression} cannot be used as a filter: some parts do not compare a column "
            "with values of its type, or treat NaN differently than this library. Combine comparisons of columns "
            "with values by &, | and ~, or write the filter as SQL text."
        )
    return translation.bound


def _from_sql(text: str, schema: Schema, *, negated: bool = False, local_time: LocalTime | None = None) -> BoundFilter:
    from tableformat.filters.sql_predicate import filter_of_sql

    return filter_of_sql(text, schema, negated=negated, local_time=local_time)
