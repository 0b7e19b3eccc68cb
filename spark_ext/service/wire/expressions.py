"""Converts Spark's predicates to filters of the planner.

A predicate has two conversions. `exact_filter` matches the same rows or is None; a metadata-only DELETE needs it.
`pruning_filter` may match more rows, never fewer. That is sufficient if Spark filters the rows again.

One of four front ends of the bound filter (`filters/predicate.py`).
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotNaN,
    NotNull,
    Or,
    Reference,
    StartsWith,
)
from pyiceberg.schema import Schema

from spark_ext.service.wire.transform_ranges import column_ranges
from tableformat.errors import TableFormatError
from tableformat.filters.bound_filter import bind_filter

SparkExpression: TypeAlias = Mapping[str, Any]
"""An expression, in the form that `ExpressionJson` of the Java side writes."""

_PREDICATES: Final[dict[str, Callable[..., BooleanExpression]]] = {
    "=": EqualTo,
    "<>": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
    "STARTS_WITH": StartsWith,
    "IN": In,
    "IS_NULL": IsNull,
    "IS_NOT_NULL": NotNull,
    "IS_NAN": IsNaN,
    "IS_NUMBER": NotNaN,
}
_CONSTANTS: Final[dict[str, BooleanExpression]] = {"ALWAYS_TRUE": AlwaysTrue(), "ALWAYS_FALSE": AlwaysFalse()}
_LITERALS: Final[dict[str | None, BooleanExpression]] = {"true": AlwaysTrue(), "false": AlwaysFalse()}
_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNKNOWN_WITH_NULL: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "STARTS_WITH", "IN"})
_MAX_IN_VALUES: Final = 10_000
"""The maximum number of values of an IN that is pushed down."""


class NoValueError(Exception):
    """A literal has no Python value of its type, for example a timestamp after the year 9999."""


def columns_of(expression: SparkExpression) -> Iterator[list[str]]:
    """The paths of the columns in the expression."""
    if "column" in expression:
        yield expression["column"]
    for argument in expression.get("arguments", ()):
        yield from columns_of(argument)


def exact_filter(predicates: Sequence[SparkExpression], schema: Schema) -> BooleanExpression | None:
    """SP-3: the conjunction as a filter that matches exactly the same rows; None if no such filter exists."""
    converted = [_exact(predicate, schema, negated=False) for predicate in predicates]
    if any(each is None for each in converted):
        return None
    return all_of([each for each in converted if each is not None])


def pruning_filter(predicates: Sequence[SparkExpression], schema: Schema) -> BooleanExpression:
    """The conjunction as a filter that matches at least the same rows."""
    return all_of([_weaker(predicate, schema) for predicate in predicates])


def all_of(filters: Iterable[BooleanExpression]) -> BooleanExpression:
    """SP-100: the conjunction of the filters as a balanced tree."""
    return And(AlwaysTrue(), AlwaysTrue(), *filters)


def any_of(filters: Iterable[BooleanExpression]) -> BooleanExpression:
    """SP-100: the disjunction of the filters as a balanced tree."""
    return Or(AlwaysFalse(), AlwaysFalse(), *filters)


def _weaker(predicate: SparkExpression, schema: Schema) -> BooleanExpression:
    """A filter that matches at least the same rows. A part of an AND without an exact form is omitted. Each branch of
    an OR is weakened separately."""
    arguments = predicate.get("arguments", ())
    match predicate.get("operator"):
        case "AND":
            return And(_weaker(arguments[0], schema), _weaker(arguments[1], schema))
        case "OR":
            return Or(_weaker(arguments[0], schema), _weaker(arguments[1], schema))
    return _exact(predicate, schema, negated=False) or AlwaysTrue()


def _exact(predicate: SparkExpression, schema: Schema, *, negated: bool) -> BooleanExpression | None:
    """The predicate as an exact filter. `negated` is whether an odd number of NOTs encloses it.

    The negation is passed down to the leaves, where an unknown result becomes false. A filter must treat it as false
    with and without an enclosing NOT.
    """
    operator = predicate.get("operator", "")
    if operator in _CONSTANTS:
        return _negated_if(_CONSTANTS[operator], negated)
    if "literal" in predicate:
        # Spark's AlwaysTrue and AlwaysFalse are both literals and predicates.
        known = _LITERALS.get(predicate["literal"])
        return AlwaysFalse() if predicate["literal"] is None else known and _negated_if(known, negated)
    if operator == "NOT":
        return _exact(predicate["arguments"][0], schema, negated=not negated)
    if operator not in {"AND", "OR"}:
        return _bound_leaf(predicate, schema, negated)
    left, right = (_exact(argument, schema, negated=negated) for argument in predicate["arguments"])
    if left is None or right is None:
        return None
    return And(left, right) if (operator == "AND") != negated else Or(left, right)


def _negated_if(expression: BooleanExpression, negated: bool) -> BooleanExpression:
    return Not(expression) if negated else expression


def _bound_leaf(predicate: SparkExpression, schema: Schema, negated: bool) -> BooleanExpression | None:
    if compares_with_null(predicate):
        return _leaf_with_null(predicate, schema, negated)
    try:
        leaf = _leaf(predicate) or _leaf_of_transform(predicate, schema)
    except NoValueError:
        return None
    return _negated_if(leaf, negated) if leaf is not None and _binds(leaf, schema) else None


def compares_with_null(predicate: SparkExpression) -> bool:
    """SP-93: whether the predicate, or a part of it, compares with null. It is then unknown even for rows with values,
    but a filter evaluates to false for them."""
    arguments = predicate.get("arguments", ())
    if predicate.get("operator") in _UNKNOWN_WITH_NULL and any(map(_is_null, arguments)):
        return True
    return _is_null(predicate) or (
        predicate.get("operator") in {"AND", "OR", "NOT"} and any(map(compares_with_null, arguments))
    )


def _is_null(expression: SparkExpression) -> bool:
    return expression.get("literal", "") is None


def _leaf_with_null(predicate: SparkExpression, schema: Schema, negated: bool) -> BooleanExpression | None:
    """SP-93: a comparison with null. `a = NULL` is true for no row, and neither is its negation. `a IN (1, NULL)` is
    true if `a` is 1."""
    operator, arguments = _column_first(predicate)
    others = [each for each in arguments if not _is_null(each)]
    if operator == "IN" and len(others) > 1:
        found = _bound_leaf({**predicate, "arguments": others}, schema, negated=False)
        return AlwaysFalse() if negated and found is not None else found
    columns = [".".join(path) for path in columns_of(others[0])] if len(others) == 1 else []
    is_plain = len(columns) == 1 and ("column" in others[0] or transform_call(others[0]) is not None)
    return AlwaysFalse() if is_plain and _binds(_PREDICATES["IS_NULL"](Reference(columns[0])), schema) else None


def _leaf(predicate: SparkExpression) -> BooleanExpression | None:
    """A comparison of one column with literals. None for any other predicate, and if a literal is null, except with
    `<=>`."""
    if "column" in predicate:
        return _PREDICATES["="](_reference(predicate), True)
    operator, arguments = _column_first(predicate)
    if not arguments or "column" not in arguments[0] or not all("literal" in each for each in arguments[1:]):
        return None
    column, literals = _reference(arguments[0]), arguments[1:]
    has_null = any(map(_is_null, literals))
    if not has_null and any(is_nan_literal(each) for each in literals):
        return _leaf_with_nan(operator, column, [literal_value(each) for each in literals if not is_nan_literal(each)])
    if operator == "<=>":
        # The result is never unknown, so its negation matches nulls.
        is_null, is_not_null = _PREDICATES["IS_NULL"](column), _PREDICATES["IS_NOT_NULL"](column)
        return is_null if has_null else And(_PREDICATES["="](column, literal_value(literals[0])), is_not_null)
    if operator not in _PREDICATES or len(literals) > _MAX_IN_VALUES:
        return None
    values = [literal_value(each) for each in literals]
    return _PREDICATES[operator](column, values) if operator == "IN" else _PREDICATES[operator](column, *values)


def _leaf_with_nan(operator: str, column: Reference, others: Sequence[Any]) -> BooleanExpression | None:
    """SP-3: a comparison with NaN, which equals itself and is greater than every number, and with the `others` of an
    IN.

    PyIceberg's comparisons do not accept NaN as a literal. Except for `<=>`, the result is unknown if the column is
    null, also when negated.
    """
    is_nan, is_number = _PREDICATES["IS_NAN"](column), _PREDICATES["IS_NUMBER"](column)
    if operator == "IN" and others and len(others) < _MAX_IN_VALUES:
        return Or(_PREDICATES["IN"](column, others), is_nan)
    return {
        "=": is_nan,
        "<=>": And(is_nan, _PREDICATES["IS_NOT_NULL"](column)),
        ">=": is_nan,
        "<>": is_number,
        "<": is_number,
        ">": And(is_nan, is_number),
        "<=": Or(is_nan, is_number),
        "IN": None if others else is_nan,
    }.get(operator)


def _leaf_of_transform(predicate: SparkExpression, schema: Schema) -> BooleanExpression | None:
    """SP-46: a comparison of a transform of one column with literals, converted to a comparison of the column. None if
    that is not possible."""
    operator, arguments = _column_first(predicate)
    called = transform_call(arguments[0]) if arguments else None
    if called is None or not all(each.get("literal") is not None for each in arguments[1:]):
        return None
    values = [literal_value(each) for each in arguments[1:]]
    try:
        source = schema.find_type(".".join(called.column))
        return column_ranges(operator, called.name, called.width, Reference(".".join(called.column)), source, values)
    except (OverflowError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class TransformCall:
    """A transform of one column, called as a function of the catalog: `system.bucket(4, id)`."""

    name: str
    width: int | None
    """The number of buckets, or the width of `truncate`; None for transforms without one."""
    column: tuple[str, ...]


def transform_call(expression: SparkExpression) -> TransformCall | None:
    """The transform in the expression; None for any other expression."""
    if "transform" not in expression:
        return None
    *widths, column = expression["arguments"]
    if "column" not in column or any(each.get("literal") is None for each in widths):
        return None
    width = int(widths[0]["literal"]) if widths else None
    return TransformCall(expression["transform"], width, tuple(column["column"]))


def _column_first(predicate: SparkExpression) -> tuple[str, Sequence[SparkExpression]]:
    """The operator and its arguments, with the column first: `5 < a` becomes `a > 5`."""
    operator, arguments = predicate.get("operator", ""), predicate.get("arguments", ())
    if operator in _MIRRORED and "literal" in arguments[0]:
        return _MIRRORED[operator], arguments[::-1]
    return operator, arguments


def _reference(expression: SparkExpression) -> Reference:
    return Reference(".".join(expression["column"]))


def is_nan_literal(literal: SparkExpression) -> bool:
    return literal["type"] in ("float", "double") and literal["literal"] == "NaN"


def literal_value(literal: SparkExpression) -> Any:
    """The Python value of a literal. Raises NoValueError if Python has no such value."""
    text, spark_type = literal["literal"], literal["type"]
    if not isinstance(spark_type, str):
        raise NoValueError
    kind = spark_type.split("(")[0]
    convert = _VALUES.get(kind)
    if convert is None:
        raise NoValueError
    try:
        return convert(text)
    except (OverflowError, ValueError) as error:
        raise NoValueError from error


def _binds(leaf: BooleanExpression, schema: Schema) -> bool:
    """Whether the planner accepts the filter: the table has the column, whose type can be compared with the literal."""
    try:
        bind_filter(leaf, schema)
    except TableFormatError:
        return False
    return True


def _number(text: str) -> float:
    number = float(text)
    if math.isnan(number):
        raise NoValueError  # Filters have no literal for it.
    return number


def _time_of_day(nanos: str) -> time:
    micros, rest = divmod(int(nanos), 1000)
    if rest:
        raise NoValueError  # Columns have microseconds.
    return (_EPOCH + timedelta(microseconds=micros)).time()


def _moment(micros: str) -> datetime:
    return _EPOCH + timedelta(microseconds=int(micros))


_VALUES: Final[dict[str, Callable[[str], Any]]] = {
    "boolean": lambda text: text == "true",
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": _number,
    "double": _number,
    "decimal": Decimal,
    "string": str,
    "date": lambda days: date(1970, 1, 1) + timedelta(days=int(days)),
    "time": _time_of_day,
    "timestamp": _moment,
    "timestamp_ntz": lambda micros: _moment(micros).replace(tzinfo=None),
    "binary": base64.b64decode,
}
