"""Writes a bound filter as a condition in Spark SQL that is true, false and unknown for the same rows.

The caller's text is not translated, because one text has different meanings in different dialects: `"v"` is a column in
one and a string in another. The literals of a bound filter are values of their columns' types.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from tableformat.errors import UnsupportedFeatureError
from tableformat.filters.bound_filter import AllOf, Always, BoundFilter, Comparison, Operator

_NAN: Final = "CAST('NaN' AS DOUBLE)"
_INFIX: Final = {
    Operator.EQUAL: "=",
    Operator.NOT_EQUAL: "<>",
    Operator.LESS: "<",
    Operator.LESS_OR_EQUAL: "<=",
    Operator.GREATER: ">",
    Operator.GREATER_OR_EQUAL: ">=",
}
_SUFFIX: Final = {
    Operator.IS_NULL: "IS NULL",
    Operator.NOT_NULL: "IS NOT NULL",
    # NaN equals NaN in Spark. Its isnan() is false for null, but these comparisons are unknown for null.
    Operator.IS_NAN: f"= {_NAN}",
    Operator.NOT_NAN: f"<> {_NAN}",
}


def spark_condition(bound: BoundFilter) -> str:
    """The filter in one line of Spark SQL. Raises UnsupportedFeatureError for a literal that Spark SQL lacks, such as a
    UUID."""
    if isinstance(bound, Always):
        return "true" if bound.answer else "false"
    if isinstance(bound, Comparison):
        return _comparison(bound)
    word = " AND " if isinstance(bound, AllOf) else " OR "
    return word.join(
        spark_condition(term) if isinstance(term, Comparison) else f"({spark_condition(term)})" for term in bound.terms
    )


def _comparison(leaf: Comparison) -> str:
    column = ".".join(f"`{part.replace('`', '``')}`" for part in leaf.path)
    if leaf.operator in _SUFFIX:
        return f"{column} {_SUFFIX[leaf.operator]}"
    literals = [_literal(value, leaf) for value in leaf.values]
    if leaf.operator in (Operator.IN, Operator.NOT_IN):
        return f"{column} {'IN' if leaf.operator is Operator.IN else 'NOT IN'} ({', '.join(literals)})"
    if leaf.operator in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        found = f"startswith({column}, {literals[0]})"
        return found if leaf.operator is Operator.STARTS_WITH else f"NOT {found}"
    return f"{column} {_INFIX[leaf.operator]} {literals[0]}"


def _literal(value: Any, leaf: Comparison) -> str:  # noqa: PLR0911 - one case for each type
    """The value as a typed literal of Spark."""
    column_type: IcebergType = leaf.field.field_type
    if isinstance(column_type, BooleanType):
        return "true" if value else "false"
    if isinstance(column_type, (IntegerType, LongType)):
        return str(value)
    if isinstance(column_type, DecimalType):
        return f"{value:f}BD"
    if isinstance(column_type, (FloatType, DoubleType)) and math.isfinite(value):
        return f"{value!r}D"
    if isinstance(column_type, StringType):
        return _string(value)
    if isinstance(column_type, DateType):
        return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
    if isinstance(column_type, (TimestampType, TimestamptzType)):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
        has_zone = isinstance(column_type, TimestamptzType)
        text = moment.replace(tzinfo=None).isoformat(" ")
        return f"TIMESTAMP '{text}Z'" if has_zone else f"TIMESTAMP_NTZ '{text}'"
    raise UnsupportedFeatureError(
        f"a condition on {leaf.name!r} with the value {value!r} of type {column_type} cannot be written in Spark's "
        "SQL. Nothing was changed. Compare a column of another type, or a finite number."
    )


def _string(value: str) -> str:
    """Text in single quotes, in which Spark treats a backslash as the start of an escape."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"
