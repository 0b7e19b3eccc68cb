"""Comparisons of the catalog's functions in the argument `where`: `system.bucket(4, id) = 2`.

They are written as Spark's predicates over them reach the planner (`ExpressionJson`), and asked of partitions alike.
"""

from __future__ import annotations

from datetime import date
from typing import Any, Final

from pyiceberg.schema import Schema
from sqlglot import exp

from spark_ext.service.wire.expressions import SparkExpression, pruning_filter
from spark_ext.service.wire.partition_predicates import PartitionPredicates
from tableformat.errors import InvalidPredicateError, UnknownColumnError
from tableformat.table import Table

_OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.In: "IN",
    exp.And: "AND",
    exp.Or: "OR",
    exp.Not: "NOT",
}
_WITH_WIDTH: Final = ("bucket", "truncate")
_FUNCTIONS: Final = (*_WITH_WIDTH, "years", "months", "days", "hours")
_EPOCH: Final = date(1970, 1, 1)


def calls_functions(condition: exp.Expr) -> bool:
    """Whether anything in it is called by a qualified name."""
    return any(_is_call(each) for each in condition.find_all(exp.Dot))


def paths_that_may_match(table: Table, conditions: list[exp.Expr]) -> frozenset[str]:
    """PR-8: locations of the branch's data files that may hold rows for which all of the conditions are true."""
    schema = table.metadata.schema()
    predicates = [_spark_expression(each, schema) for each in conditions]
    plan = table.scan(where=pruning_filter(predicates, schema)).plan()
    left = PartitionPredicates(predicates, table.view).narrowed(plan)
    return frozenset(file.file_path for file in (*(task.data_file for task in left.tasks), *left.covered))


def _spark_expression(expression: exp.Expr, schema: Schema) -> SparkExpression:
    operator = _OPERATORS.get(type(expression))
    if isinstance(expression, exp.Paren):
        return _spark_expression(expression.this, schema)
    if isinstance(expression, exp.Between):
        value, low, high = (_spark_expression(expression.args[name], schema) for name in ("this", "low", "high"))
        ends = [{"operator": ">=", "arguments": [value, low]}, {"operator": "<=", "arguments": [value, high]}]
        return {"operator": "AND", "arguments": ends}
    if operator is not None and not expression.args.get("query"):
        parts = [expression.this, expression.args.get("expression"), *expression.args.get("expressions", ())]
        return {"operator": operator, "arguments": [_spark_expression(each, schema) for each in parts if each]}
    if isinstance(expression, exp.Dot) and _is_call(expression):
        return _call(expression, schema)
    if isinstance(expression, exp.Column):
        name = ".".join(part.name for part in expression.parts)
        if name not in schema.column_names:
            raise UnknownColumnError(name, list(schema.column_names), where="where")
        return {"column": name.split(".")}
    return _literal(expression)


def _call(call: exp.Dot, schema: Schema) -> SparkExpression:
    function = call.expression
    name = function.name.lower()
    if name not in _FUNCTIONS or call.this.name.lower() != "system":
        raise InvalidPredicateError(
            f"where: {call.sql(dialect='spark')} is no function of the catalog. Those are "
            f"{', '.join(f'system.{each}' for each in _FUNCTIONS)}."
        )
    arguments = [_spark_expression(each, schema) for each in function.expressions]
    *widths, column = arguments or [{}]
    has_width = len(widths) == 1 and widths[0].get("type") == "long" and int(widths[0]["literal"]) > 0
    if "column" not in column or (not has_width if name in _WITH_WIDTH else bool(widths)):
        usage = f"system.{name}(4, column)" if name in _WITH_WIDTH else f"system.{name}(column)"
        raise InvalidPredicateError(f"where: {call.sql(dialect='spark')} should be {usage}.")
    return {"transform": name, "arguments": arguments}


def _literal(expression: exp.Expr) -> SparkExpression:
    if isinstance(expression, exp.Neg) and isinstance(expression.this, exp.Literal):
        positive = _literal(expression.this)
        return {**positive, "literal": f"-{positive['literal']}"}
    if isinstance(expression, exp.Literal):
        kind = "string" if expression.is_string else "decimal" if "." in expression.name else "long"
        return {"literal": expression.name, "type": kind}
    if isinstance(expression, exp.Cast) and expression.is_type("date") and isinstance(expression.this, exp.Literal):
        return _date(expression)
    raise InvalidPredicateError(
        f"where: {expression.sql(dialect='spark')} beside a function of the catalog: compare those, and columns, with "
        "constants, as in system.bucket(4, id) = 2 or system.days(ts) >= DATE '2026-01-31'."
    )


def _date(expression: exp.Expr) -> dict[str, Any]:
    try:
        day = date.fromisoformat(expression.this.name)
    except ValueError as error:
        raise InvalidPredicateError(f"where: {expression.this.name!r} is no date.") from error
    return {"literal": str((day - _EPOCH).days), "type": "date"}


def _is_call(expression: exp.Dot) -> bool:
    return isinstance(expression.expression, exp.Func)
