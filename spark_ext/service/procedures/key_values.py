"""Key prefixes and bounds, in the form of a SQL statement.

    prefix   named_struct('id1', 'a', 'id2', 2), map('id1', 'a'), or an array of them
    bound    struct('a', 2): values of the leading columns in order; array('a', 'b') the same; a single value is one

Each value keeps its SQL type, and the library rejects values that do not fit their column. Two types that SQL cannot
express are converted: a uuid from text, and a double from a decimal.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyiceberg.types import DoubleType, FloatType, IcebergType, PrimitiveType, UUIDType

from spark_ext.service.procedures.argument_values import Struct
from spark_ext.service.procedures.column_names import as_spelled
from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.keys.arrow_columns import array_of_values
from tableformat.table import Table

_UNNAMED: Final = re.compile(r"col[1-9][0-9]*")
"""The names that Spark generates for the fields of `struct('a', 2)`."""

_SIDE_LENGTH: Final = len("lower_")
"""`lower_` and `upper_` begin the names of the columns of ranges, and have the same length."""


def prefix_table(table: Table, prefix: Any) -> pa.Table:
    """The prefixes as columns, for `Table.delete_prefix`, which checks that the columns lead the key."""
    rows = [_named_values(each, table) for each in (prefix if isinstance(prefix, list) and prefix else [prefix])]
    names = list(rows[0])
    if any(set(row) != set(names) for row in rows):
        raise InvalidArgumentError("prefix: all prefixes of an array must name the same columns.")
    columns = {}
    for name in names:
        column_type = _type_of(table, name, table.key)
        values = [_fitting(row[name], column_type, name) for row in rows]
        columns[name] = array_of_values(values, column_type, name=name)
    return pa.table(columns)


def source_prefixes(table: Table, rows: pa.Table) -> pa.Table:
    """PR-25: the rows of a source as prefixes, for `Table.delete_prefix`. Spark represents a uuid as text."""
    names = [as_spelled(name, table.key) for name in rows.column_names]
    columns = [
        _typed(values, _type_of(table, name, table.key), name) for name, values in zip(names, rows.columns, strict=True)
    ]
    return pa.table(columns, names=names)


def source_ranges(table: Table, rows: pa.Table) -> pa.Table:
    """PR-28: the rows of a source as ranges, for `Table.delete_ranges`. The source has columns of bounds only."""
    known = [field.name for field in table.metadata.schema().fields]
    sides = [name[:_SIDE_LENGTH].casefold() for name in rows.column_names]
    names = [as_spelled(name[_SIDE_LENGTH:], known) for name in rows.column_names]
    columns = [
        _typed(values, _type_of(table, name, known), name) for name, values in zip(names, rows.columns, strict=True)
    ]
    return pa.table(columns, names=[side + name for side, name in zip(sides, names, strict=True)])


def _typed(values: pa.ChunkedArray, column_type: PrimitiveType, name: str) -> pa.ChunkedArray | pa.Array:
    """The values of a source's column. Only a uuid is converted."""
    if not isinstance(column_type, UUIDType):
        return values
    return array_of_values([_fitting(value, column_type, name) for value in values.to_pylist()], column_type, name=name)


def bound(table: Table, value: Any, on: Sequence[str], *, argument: str) -> tuple[Any, ...] | None:
    """The values of a bound over the columns `on`. None means unbounded."""
    if value is None:
        return None
    if isinstance(value, dict):
        raise InvalidArgumentError(f"{argument}: a map has no order; use struct(...) or array(...).")
    if isinstance(value, Struct):
        names = [as_spelled(name, on) for name, _ in value]
        if not all(_UNNAMED.fullmatch(name) for name in names) and names != list(on[: len(names)]):
            raise InvalidArgumentError(
                f"{argument} contains ({', '.join(names)}), which are not the first of the columns ({', '.join(on)})."
            )
        value = [each for _, each in value]
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InvalidArgumentError(f"{argument} has no value; NULL is an open bound.")
    if len(values) > len(on):
        raise InvalidArgumentError(f"{argument} has {len(values)} values for the columns ({', '.join(on)}).")
    return tuple(
        _fitting(each, _type_of(table, name, on), name) for each, name in zip(values, on[: len(values)], strict=True)
    )


def _named_values(prefix: Any, table: Table) -> dict[str, Any]:
    pairs = list(prefix.items()) if isinstance(prefix, dict) else list(prefix) if isinstance(prefix, Struct) else []
    known = [field.name for field in table.metadata.schema().fields]
    named = {as_spelled(name, known) if isinstance(name, str) else name: value for name, value in pairs}
    if not pairs or len(named) < len(pairs) or not all(isinstance(name, str) for name in named):
        raise InvalidArgumentError(
            "prefix must contain leading key columns with their values, each column once: named_struct('id1', 'a', "
            "'id2', 2), map('id1', 'a'), or an array of them."
        )
    return named


def _type_of(table: Table, name: str, candidates: Sequence[str]) -> PrimitiveType:
    for field in table.metadata.schema().fields:
        if field.name == name:
            if not isinstance(field.field_type, PrimitiveType):
                raise InvalidArgumentError(f"column {name!r} is {field.field_type}: deletes support only simple types.")
            return field.field_type
    raise UnknownColumnError(name, candidates, where=f"the table {table.name}")


def _fitting(value: Any, column_type: IcebergType, name: str) -> Any:
    """PR-7: the value, converted if the column is a uuid or floating point."""
    if isinstance(value, Decimal) and isinstance(column_type, FloatType | DoubleType):
        return float(value)
    if isinstance(value, str) and isinstance(column_type, UUIDType):
        try:
            return uuid.UUID(value)
        except ValueError as error:
            raise InvalidArgumentError(f"column {name!r} is a uuid, but {value!r} is not a UUID.") from error
    return value
