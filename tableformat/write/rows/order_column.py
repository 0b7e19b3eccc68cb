"""The order column of a table: its values show if a row or a change event is older than the stored one (CP-69)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.errors import InvalidArgumentError, UnknownColumnError, UnsupportedFeatureError
from tableformat.keys.families import FAMILIES_WITH_EXACT_ORDER, family_of_type
from tableformat.properties import ORDER_COLUMN


def order_column(properties: Mapping[str, str], schema: Schema) -> NestedField | None:
    """CP-69: the order column of a table with these properties; None for a table without one.

    Raises UnsupportedFeatureError if another program set a column that cannot be an order column. Otherwise rows would
    be written without the comparison that the property promises.
    """
    name = properties.get(ORDER_COLUMN)
    if name is None:
        return None
    try:
        return _checked(name, schema)
    except (InvalidArgumentError, UnknownColumnError) as error:
        raise UnsupportedFeatureError(
            f"{error} Nothing was changed. To write without a comparison, call remove_properties({ORDER_COLUMN!r})."
        ) from error


def check_order_column(given: Mapping[str, str], schema: Schema) -> None:
    """FM-33: check the order column in properties that a caller sets. Raises UnknownColumnError for a column that the
    table does not have. Raises InvalidArgumentError for a nested column, a key column, and a type without an exact
    order."""
    name = given.get(ORDER_COLUMN)
    if name is not None:
        _checked(name, schema)


def refuse_order_column(properties: Mapping[str, str], column: str, change: str) -> None:
    """FM-33: raise InvalidArgumentError for a change of the column that the property names."""
    if properties.get(ORDER_COLUMN) == column:
        raise InvalidArgumentError(
            f"column {column!r} is the order column of the table and cannot be {change}. Nothing was changed. Call "
            f"remove_properties({ORDER_COLUMN!r}) first."
        )


def with_order_column(order_by: Sequence[str], column: NestedField | None) -> tuple[str, ...]:
    """CP-70: the columns that distinguish older from newer messages of one write, on a table with an order column.

    Raises InvalidArgumentError if they do not include the order column: the rows of one message could then have
    different values in it.
    """
    names = tuple(order_by)
    if column is None:
        return names
    if names and column.name not in names:
        raise InvalidArgumentError(
            f"order_by has the columns ({', '.join(names)}), but the table compares rows by {column.name!r} "
            f"({ORDER_COLUMN}). Nothing was written. Add {column.name!r} to order_by, or omit order_by."
        )
    return names or (column.name,)


def _checked(name: str, schema: Schema) -> NestedField:
    fields = {field.name: field for field in schema.fields}
    if name not in fields:
        raise UnknownColumnError(name, fields, where=f"the table ({ORDER_COLUMN})")
    field = fields[name]
    kind = field.field_type
    if not isinstance(kind, PrimitiveType) or family_of_type(kind) not in FAMILIES_WITH_EXACT_ORDER:
        raise InvalidArgumentError(
            f"table property {ORDER_COLUMN}: column {name!r} is a {kind}, which has no exact order. Choose a column "
            "of whole numbers, decimals, dates, times, text or bytes."
        )
    if field.field_id in schema.identifier_field_ids:
        raise InvalidArgumentError(
            f"table property {ORDER_COLUMN}: column {name!r} belongs to the key, so it is equal in all rows of a "
            "key. Choose another column."
        )
    return field
