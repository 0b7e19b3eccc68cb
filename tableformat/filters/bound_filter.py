"""A filter bound to a schema: comparisons of one column with literals, under AND and OR, without NOT.

PyIceberg's bound expressions are not used, because their comparisons follow Python (null, NaN and out-of-range literals
match in negations) and because they cannot bind nanosecond timestamps. Rows match as in SQL engines (DuckDB, Spark):

- A comparison with a null is unknown, and an unknown row does not match. Only IS NULL and IS NOT NULL see nulls.
- NaN equals NaN and is greater than every other number. -0.0 equals 0.0.
- Strings compare by code point, UUIDs and binary by unsigned bytes.

Negation is pushed to the leaves, where it turns one comparison into another: NOT a < 1 becomes a >= 1, and both are
unknown for null. Therefore two truth values are enough: a row for which a leaf is unknown does not match the leaf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    BoundPredicate,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Reference,
    SetPredicate,
    StartsWith,
    UnboundPredicate,
)
from pyiceberg.expressions.literals import Literal
from pyiceberg.expressions.visitors import rewrite_not
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, DoubleType, FloatType, NestedField, PrimitiveType, StringType, StructType

from tableformat.errors import InvalidPredicateError, UnknownColumnError
from tableformat.filters.literals import Fitted, fit, literal_of


class Operator(Enum):
    """The comparison of a leaf."""

    IS_NULL = "IS NULL"
    NOT_NULL = "IS NOT NULL"
    IS_NAN = "IS NAN"
    NOT_NAN = "IS NOT NAN"
    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "IN"
    NOT_IN = "NOT IN"
    STARTS_WITH = "STARTS WITH"
    NOT_STARTS_WITH = "NOT STARTS WITH"


_BY_PREDICATE: Final[dict[type[BooleanExpression], Operator]] = {
    IsNull: Operator.IS_NULL,
    NotNull: Operator.NOT_NULL,
    IsNaN: Operator.IS_NAN,
    NotNaN: Operator.NOT_NAN,
    EqualTo: Operator.EQUAL,
    NotEqualTo: Operator.NOT_EQUAL,
    LessThan: Operator.LESS,
    LessThanOrEqual: Operator.LESS_OR_EQUAL,
    GreaterThan: Operator.GREATER,
    GreaterThanOrEqual: Operator.GREATER_OR_EQUAL,
    In: Operator.IN,
    NotIn: Operator.NOT_IN,
    StartsWith: Operator.STARTS_WITH,
    NotStartsWith: Operator.NOT_STARTS_WITH,
}
_PREDICATES: Final[dict[Operator, Callable[..., BooleanExpression]]] = {
    operator: predicate for predicate, operator in _BY_PREDICATE.items()
}

NEGATION: Final[dict[Operator, Operator]] = {
    Operator.IS_NULL: Operator.NOT_NULL,
    Operator.IS_NAN: Operator.NOT_NAN,
    Operator.EQUAL: Operator.NOT_EQUAL,
    Operator.LESS: Operator.GREATER_OR_EQUAL,
    Operator.LESS_OR_EQUAL: Operator.GREATER,
    Operator.IN: Operator.NOT_IN,
    Operator.STARTS_WITH: Operator.NOT_STARTS_WITH,
}
NEGATION.update({negated: operator for operator, negated in list(NEGATION.items())})
"""The comparison that is true if this one is false. Both are unknown for null."""


@dataclass(frozen=True, slots=True)
class Always:
    """The same result for every row. `TRUE` and `FALSE` are the only two instances."""

    answer: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of one column with literals of its type."""

    field: NestedField
    path: tuple[str, ...]
    """Names from the top-level column to the field."""
    operator: Operator
    values: tuple[Any, ...]
    """Values in Iceberg's internal representation and the field's type; distinct and ascending for IN and NOT IN. Never
    NaN."""
    is_nullable: bool
    """Whether the field, or a struct that contains it, is optional."""

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def value(self) -> Any:
        """The literal of a comparison with a single literal."""
        return self.values[0]

    @property
    def is_float(self) -> bool:
        return isinstance(self.field.field_type, (FloatType, DoubleType))

    def negated(self) -> Comparison:
        return Comparison(self.field, self.path, NEGATION[self.operator], self.values, self.is_nullable)


@dataclass(frozen=True, slots=True)
class AllOf:
    """AND of two or more filters."""

    terms: tuple[BoundFilter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """OR of two or more filters."""

    terms: tuple[BoundFilter, ...]


BoundFilter = Always | Comparison | AllOf | AnyOf

TRUE: Final = Always(True)
FALSE: Final = Always(False)


def always(answer: bool) -> Always:
    """TRUE or FALSE."""
    return TRUE if answer else FALSE


def bind_filter(expression: BooleanExpression, schema: Schema) -> BoundFilter:
    """Bind an expression to a schema.

    Raises UnknownColumnError for a name that the schema lacks. Raises InvalidPredicateError for a literal that cannot
    be compared with the column's type, for columns inside lists and maps, and for nesting that is too deep for Python.
    """
    try:
        return _bind(rewrite_not(expression), FilterColumns(schema))
    except RecursionError as error:
        raise InvalidPredicateError("where is nested too deeply; use IN (...) or a join instead.") from error


def operator_of(predicate: UnboundPredicate) -> Operator:
    """The comparison for a PyIceberg predicate."""
    return _BY_PREDICATE[type(predicate)]


def all_of(terms: list[BoundFilter]) -> BoundFilter:
    """AND, folded: constants and nested ANDs disappear."""
    parts = (part for term in terms for part in (term.terms if isinstance(term, AllOf) else (term,)))
    flat = [part for part in parts if part is not TRUE]
    if any(part is FALSE for part in flat):
        return FALSE
    return AllOf(tuple(flat)) if len(flat) > 1 else flat[0] if flat else TRUE


def any_of(terms: list[BoundFilter]) -> BoundFilter:
    """OR, folded: constants and nested ORs disappear."""
    flat = [
        part for term in terms for part in (term.terms if isinstance(term, AnyOf) else (term,)) if part is not FALSE
    ]
    if any(part is TRUE for part in flat):
        return TRUE
    return AnyOf(tuple(flat)) if len(flat) > 1 else flat[0] if flat else FALSE


def comparisons(bound: BoundFilter) -> Iterator[Comparison]:
    """Every leaf."""
    if isinstance(bound, Comparison):
        yield bound
    elif isinstance(bound, (AllOf, AnyOf)):
        for term in bound.terms:
            yield from comparisons(term)


def to_expression(bound: BoundFilter) -> BooleanExpression:
    """The same filter as an unbound PyIceberg expression."""
    if isinstance(bound, Always):
        return AlwaysTrue() if bound.answer else AlwaysFalse()
    if isinstance(bound, Comparison):
        return _to_predicate(bound)
    parts = [to_expression(term) for term in bound.terms]
    return And(*parts) if isinstance(bound, AllOf) else Or(*parts)


class FilterColumns:
    """The columns of a schema that a filter can name, each resolved once."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._leaves: dict[str, Comparison] = {}
        self._index(schema.fields, (), is_nullable=False)

    @property
    def names(self) -> list[str]:
        """Dotted names of top-level columns and of fields of structs."""
        return list(self._leaves)

    def leaf(self, name: str, operator: Operator) -> Comparison:
        """A comparison of the column, without literals yet. Raises UnknownColumnError, which names the nearest
        column."""
        leaf = self._leaves.get(name)
        if leaf is not None:
            return _with(leaf, operator, ())
        if name in self._schema.column_names:
            raise InvalidPredicateError(
                f"column {name!r} is inside a list or a map; a filter supports only columns with one value per row."
            )
        raise UnknownColumnError(name, self.names, where="the filter")

    def _index(self, fields: tuple[NestedField, ...], parents: tuple[str, ...], *, is_nullable: bool) -> None:
        for field in fields:
            path = (*parents, field.name)
            leaf = Comparison(field, path, Operator.NOT_NULL, (), is_nullable or field.optional)
            self._leaves.setdefault(leaf.name, leaf)
            if isinstance(field.field_type, StructType):
                self._index(field.field_type.fields, path, is_nullable=leaf.is_nullable)


def _bind(expression: BooleanExpression, columns: FilterColumns) -> BoundFilter:
    if isinstance(expression, AlwaysTrue):
        return TRUE
    if isinstance(expression, AlwaysFalse):
        return FALSE
    if isinstance(expression, And):
        return all_of([_bind(expression.left, columns), _bind(expression.right, columns)])
    if isinstance(expression, Or):
        return any_of([_bind(expression.left, columns), _bind(expression.right, columns)])
    if isinstance(expression, UnboundPredicate):
        return _bind_predicate(expression, columns)
    if isinstance(expression, (BoundPredicate, Not)):
        raise InvalidPredicateError(
            f"{expression} is already bound to a schema; use column names instead, for example EqualTo('id', 1)."
        )
    raise InvalidPredicateError(f"a scan cannot filter by the expression {expression!r}.")


def _bind_predicate(predicate: UnboundPredicate, columns: FilterColumns) -> BoundFilter:
    assert isinstance(predicate.term, Reference)
    name = predicate.term.name
    operator = operator_of(predicate)
    leaf = columns.leaf(name, operator)
    field = leaf.field
    if operator in (Operator.IS_NULL, Operator.NOT_NULL):
        return leaf if leaf.is_nullable else always(operator is Operator.NOT_NULL)
    if not isinstance(field.field_type, PrimitiveType):
        raise InvalidPredicateError(
            f"column {name!r} of type {field.field_type} supports only IS NULL and IS NOT NULL; compare one of its "
            "fields."
        )
    if operator in (Operator.IS_NAN, Operator.NOT_NAN):
        if leaf.is_float:
            return leaf
        return FALSE if operator is Operator.IS_NAN else not_null(leaf)
    if isinstance(predicate, SetPredicate):
        fitted = [_fit(value, field.field_type, name) for value in predicate.literals]
        return compare_with_set(leaf, fitted)
    assert isinstance(predicate, LiteralPredicate)
    return compare(leaf, _fit(predicate.literal, field.field_type, name))


def compare(leaf: Comparison, fitted: Fitted) -> BoundFilter:
    """The comparison with one literal, which may lie between two values of the column's type."""
    operator = leaf.operator
    if operator in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH) and not isinstance(
        leaf.field.field_type, (StringType, BinaryType)
    ):
        raise InvalidPredicateError(
            f"column {leaf.name!r} of type {leaf.field.field_type} does not support prefix comparisons."
        )
    if is_nan_value(fitted.floor):
        return _compare_with_nan(leaf)
    if fitted.exact:
        return _with(leaf, operator, (fitted.floor,))
    if operator is Operator.EQUAL:
        return FALSE
    if operator is Operator.NOT_EQUAL:
        return not_null(leaf)
    above = operator in (Operator.GREATER, Operator.GREATER_OR_EQUAL)
    if fitted.floor is None:
        return not_null(leaf) if above else FALSE
    return _with(leaf, Operator.GREATER if above else Operator.LESS_OR_EQUAL, (fitted.floor,))


def compare_with_set(leaf: Comparison, fitted: list[Fitted]) -> BoundFilter:
    """IN and NOT IN. A literal that is not a value of the type equals no row."""
    is_in = leaf.operator is Operator.IN
    exact = [value.floor for value in fitted if value.exact]
    numbers = tuple(sorted({value for value in exact if not is_nan_value(value)}))
    if not numbers:
        found = FALSE if is_in else not_null(leaf)
    elif len(numbers) == 1:
        found = _with(leaf, Operator.EQUAL if is_in else Operator.NOT_EQUAL, numbers)
    else:
        found = _with(leaf, leaf.operator, numbers)
    if len(numbers) < len(exact) and any(is_nan_value(value) for value in exact):
        nan = _with(leaf, Operator.IS_NAN if is_in else Operator.NOT_NAN, ())
        return any_of([found, nan]) if is_in else all_of([found, nan])
    return found


def _compare_with_nan(leaf: Comparison) -> BoundFilter:
    """NaN equals NaN and is greater than every number, so comparisons with it need no literal."""
    operator = leaf.operator
    if operator is Operator.GREATER:
        return FALSE
    if operator is Operator.LESS_OR_EQUAL:
        return not_null(leaf)
    is_same = operator in (Operator.EQUAL, Operator.GREATER_OR_EQUAL)
    return _with(leaf, Operator.IS_NAN if is_same else Operator.NOT_NAN, ())


def not_null(leaf: Comparison) -> BoundFilter:
    """True for every row with a value in the column of the leaf."""
    return _with(leaf, Operator.NOT_NULL, ()) if leaf.is_nullable else TRUE


def is_nan_value(value: Any) -> bool:
    """Whether the value is NaN. No bound and no literal of a comparison is NaN."""
    return isinstance(value, float) and math.isnan(value)


def _with(leaf: Comparison, operator: Operator, values: tuple[Any, ...]) -> Comparison:
    return Comparison(leaf.field, leaf.path, operator, values, leaf.is_nullable)


def _fit(literal: Literal[Any], column_type: PrimitiveType, name: str) -> Fitted:
    try:
        return fit(literal, column_type)
    except (TypeError, ValueError) as refused:
        raise InvalidPredicateError(
            f"column {name!r} of type {column_type} cannot be compared with {literal.value!r}: {refused}."
        ) from refused


def _to_predicate(leaf: Comparison) -> BooleanExpression:
    column_type = leaf.field.field_type
    predicate = _PREDICATES[leaf.operator]
    if not leaf.values:
        return predicate(leaf.name)
    assert isinstance(column_type, PrimitiveType)
    literals = [literal_of(value, column_type) for value in leaf.values]
    if leaf.operator in (Operator.IN, Operator.NOT_IN):
        return predicate(leaf.name, literals)
    return predicate(leaf.name, literals[0])
