"""Translates a Polars expression to a PyIceberg expression, so that `where=` can take it.

Polars can serialize an expression as JSON, which is read here. A comparison of a column with literals has the same
meaning in Polars and in this library (`bound_filter.py`): a comparison with null is unknown, NaN equals NaN and is
greater than every number. All other expressions are refused, because a filter that is almost right deletes wrong rows.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyarrow import ipc
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
from pyiceberg.expressions.literals import literal
from pyiceberg.schema import Schema
from pyiceberg.types import FloatType

from tableformat.errors import InvalidPredicateError
from tableformat.filters.literals import nearest_float
from tableformat.keys.exact_decimals import decimal_of

_COMPARISONS: Final[dict[str, Callable[..., BooleanExpression]]] = {
    "Eq": EqualTo,
    "NotEq": NotEqualTo,
    "Lt": LessThan,
    "LtEq": LessThanOrEqual,
    "Gt": GreaterThan,
    "GtEq": GreaterThanOrEqual,
}
_MIRRORED: Final = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
_TESTS: Final[dict[str, Callable[..., BooleanExpression]]] = {
    "IsNull": IsNull,
    "IsNotNull": NotNull,
    "IsNan": IsNaN,
    "IsNotNan": NotNaN,
}
_BOUNDS: Final = {"Both": ("GtEq", "LtEq"), "Left": ("GtEq", "Lt"), "Right": ("Gt", "LtEq"), "None": ("Gt", "Lt")}
_NANOSECONDS: Final = {"Nanoseconds": 1, "Microseconds": 1_000, "Milliseconds": 1_000_000}
_PLAIN: Final = frozenset(
    {"String", "Boolean", "Float32", "Float64", "Int", "Float", "Str"}
    | {f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64, 128)}
)


def from_polars(expression: Any, schema: Schema) -> BooleanExpression:
    """The same filter over column names. A column that `schema` lacks is not an error here.

    Raises InvalidPredicateError for anything but comparisons of one column with literals under `&`, `|` and `~`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = expression.meta.serialize(format="json")
    return _Translation(str(expression), schema).condition(json.loads(text))


class _Translation:
    """One walk over one expression. Errors show its text."""

    def __init__(self, text: str, schema: Schema) -> None:
        self._text = text
        self._schema = schema

    def condition(self, node: Any) -> BooleanExpression:
        match node:
            case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
                return And(self.condition(left), self.condition(right))
            case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
                return Or(self.condition(left), self.condition(right))
            case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _COMPARISONS:
                return self._comparison(left, op, right)
            case {"Function": {"input": inputs, "function": function}}:
                return self._function(inputs, function)
            case {"Literal": {"Scalar": {"Boolean": bool(value)}}}:
                return AlwaysTrue() if value else AlwaysFalse()
            case {"Column": _}:
                return EqualTo(term=self._column(node), value=literal(True))
        raise self._refused("it does not compare a column with a value")

    def _comparison(self, left: Any, op: str, right: Any) -> BooleanExpression:
        if "Literal" in left:
            left, op, right = right, _MIRRORED.get(op, op), left
        column, value = self._column(left), self._value(right)
        if "Float64" in right["Literal"].get("Scalar", ()):
            self._refuse_rounding(column, [value])
        return _COMPARISONS[op](column, literal(value))

    def _function(self, inputs: Sequence[Any], function: Any) -> BooleanExpression:  # noqa: PLR0911 - one for each
        match function:
            case {"Boolean": str(name)} if name in _TESTS:
                return _TESTS[name](self._column(inputs[0]))
            case {"Boolean": "Not"}:
                return Not(self.condition(inputs[0]))
            case {"Boolean": "AllHorizontal"}:
                return reduce(And, map(self.condition, inputs))
            case {"Boolean": "AnyHorizontal"}:
                return reduce(Or, map(self.condition, inputs))
            case {"Boolean": {"IsIn": {"nulls_equal": False}}}:
                column, values = self._column(inputs[0]), self._values(inputs[1])
                self._refuse_rounding(column, values)
                return In(term=column, values={literal(value) for value in values})
            case {"Boolean": {"IsBetween": {"closed": closed}}}:
                lower, upper = _BOUNDS[closed]
                return And(self._comparison(inputs[0], lower, inputs[1]), self._comparison(inputs[0], upper, inputs[2]))
            case {"StringExpr": "StartsWith"}:
                return StartsWith(term=self._column(inputs[0]), value=literal(self._value(inputs[1])))
        raise self._refused(f"the function {json.dumps(function)} is not supported")

    def _refuse_rounding(self, column: Reference, values: Sequence[Any]) -> None:
        """A 64-bit number and a column of floats: Polars compares the exact number, a filter the nearest float."""
        name = column.name
        if name not in self._schema.column_names or not isinstance(self._schema.find_type(name), FloatType):
            return
        for value in values:
            if isinstance(value, float) and math.isfinite(value) and nearest_float(value) != value:
                raise self._refused(
                    f"{value} is not a 32-bit float like the values of the column; use pl.Float32 values"
                )

    def _column(self, node: Any) -> Reference:
        return Reference(self._path(node))

    def _path(self, node: Any) -> str:
        match node:
            case {"Column": str(name)}:
                return name
            case {"Function": {"input": [struct], "function": {"StructExpr": {"FieldByName": str(name)}}}}:
                return f"{self._path(struct)}.{name}"
        raise self._refused("one side of each comparison must be a column, without a computation")

    def _value(self, node: Any) -> Any:
        match node:
            case {"Literal": {"Dyn": dict(typed)} | {"Scalar": dict(typed)}} if len(typed) == 1:
                ((kind, value),) = typed.items()
                return self._literal(kind, value)
        raise self._refused("the other side of each comparison must be a value")

    def _literal(self, kind: str, value: Any) -> Any:
        if value is None or kind == "Null":
            raise self._refused(
                "nothing equals null, and NaN is indistinguishable from infinity here; use is_null() or is_nan()"
            )
        if kind in _PLAIN:
            return value
        match kind, value:
            case "Binary", list():
                return bytes(value)
            case "Date", int():
                return date(1970, 1, 1) + timedelta(days=value)
            case "Time", int() if value % 1000 == 0:
                return (datetime(1970, 1, 1) + timedelta(microseconds=value // 1000)).time()
            case "Decimal", [unscaled, _, scale]:
                return decimal_of(unscaled, scale)
            case "Datetime", [ticks, str(unit), zone] if ticks * _NANOSECONDS.get(unit, 1) % 1000 == 0:
                epoch = datetime(1970, 1, 1, tzinfo=None if zone is None else UTC)
                return epoch + timedelta(microseconds=ticks * _NANOSECONDS[unit] // 1000)
        raise self._refused(f"a value of type {kind} cannot be compared with a column")

    def _values(self, node: Any) -> list[Any]:
        match node:
            case {"Literal": {"Scalar": {"List": list(stored)}} | {"Series": list(stored)}}:
                with ipc.open_stream(bytes(stored)) as stream:
                    values = stream.read_all().column(0)
                if not len(values) or values.null_count or pa.types.is_nested(values.type):
                    raise self._refused("is_in requires at least one value, and none may be null or nested")
                return list(self._in_microseconds(values).to_pylist())
        raise self._refused("is_in requires values")

    def _in_microseconds(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Python's values and PyIceberg's literals have no nanoseconds."""
        if getattr(values.type, "unit", None) != "ns":
            return values
        is_time = pa.types.is_time(values.type)
        try:
            return values.cast(pa.time64("us") if is_time else pa.timestamp("us", values.type.tz))
        except pa.ArrowInvalid:
            raise self._refused("nanosecond values cannot be compared with a column") from None

    def _refused(self, why: str) -> InvalidPredicateError:
        return InvalidPredicateError(
            f"the Polars expression {self._text} cannot be used as a filter: {why}. Combine comparisons of columns "
            "with values by &, | and ~, write the filter as SQL text, or read more rows and filter them in Polars."
        )
