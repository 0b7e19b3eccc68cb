"""ALTER TABLE ... ADD, DROP and REPLACE PARTITION FIELD, WRITE, and SET and DROP IDENTIFIER FIELDS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField
from pyiceberg.transforms import VoidTransform

from spark_ext.service.ddl.tables import partition_text
from spark_ext.service.statements.columns import column_name
from spark_ext.service.statements.statement import Statement, statement
from tableformat.errors import InvalidArgumentError, UnknownColumnError, nearest_hint
from tableformat.metadata.partition_text import partition_spec
from tableformat.operations.evolution.write_order import set_write_order
from tableformat.table import Table

Transform: TypeAlias = Mapping[str, Any]
"""{"transform": name, "arguments": [...]}, as the Java side parsed it."""


@statement("add_partition_field")
def add_partition_field(table: Table, said: Statement) -> None:
    """SQ-4: add a partition field."""
    added = _parsed(table, said["added"], said)
    with table.update_spec() as update:
        update.add_field(_column(table, added), added.transform, said["field"])


@statement("drop_partition_field")
def drop_partition_field(table: Table, said: Statement) -> None:
    """SQ-4: drop a partition field."""
    dropped = _existing(table, said["dropped"], said)
    with table.update_spec() as update:
        update.remove_field(dropped.name)


@statement("replace_partition_field")
def replace_partition_field(table: Table, said: Statement) -> None:
    """SQ-4: drop a partition field and add another, in one commit."""
    dropped, added = _existing(table, said["dropped"], said), _parsed(table, said["added"], said)
    with table.update_spec() as update:
        update.remove_field(dropped.name)
        update.add_field(_column(table, added), added.transform, said["field"])


@statement("write_order")
def write_order(table: Table, said: Statement) -> None:
    """SQ-5: set the sort order and distribution of writes."""
    order = []
    for each in said["order"]:
        parsed = _parsed(table, each["transform"], said)
        order.append(
            SortField(
                parsed.source_id,
                parsed.transform,
                SortDirection.DESC if each["descends"] else SortDirection.ASC,
                NullOrder.NULLS_FIRST if each["nulls_first"] else NullOrder.NULLS_LAST,
            )
        )
    set_write_order(table.iceberg, order, said["distribution"])


@statement("set_identifier_fields")
def set_identifier_fields(table: Table, said: Statement) -> None:
    """SQ-6: set the key, in the order of the statement."""
    table.set_key([_key_column(table, path, said) for path in said["columns"]])


@statement("drop_identifier_fields")
def drop_identifier_fields(table: Table, said: Statement) -> None:
    """SQ-6: remove columns from the key. The other columns keep their order."""
    dropped = [_key_column(table, path, said) for path in said["columns"]]
    for name in dropped:
        if name not in table.key:
            raise InvalidArgumentError(
                f"column {name!r} is not an identifier field of {table.name}. Its identifier fields: "
                f"{', '.join(table.key) or 'none'}."
            )
    table.set_key([name for name in table.key if name not in dropped])


def _key_column(table: Table, path: list[str], said: Statement) -> str:
    schema = table.metadata.schema()
    return column_name(schema, path, case_sensitive=said["case_sensitive"])


def _parsed(table: Table, transform: Transform, said: Statement) -> PartitionField:
    """The transform of a column of the table, with Iceberg's default name."""
    schema = table.metadata.schema()
    arguments = [
        {"column": [column_name(schema, each["column"], case_sensitive=said["case_sensitive"])]}
        if "column" in each
        else each
        for each in transform["arguments"]
    ]
    text = partition_text({**transform, "arguments": arguments})
    return partition_spec(schema, [text]).fields[0]


def _column(table: Table, field: PartitionField) -> str:
    name = table.metadata.schema().find_column_name(field.source_id)
    assert name is not None, "the column of a parsed field exists"
    return name


def _existing(table: Table, transform: Transform, said: Statement) -> PartitionField:
    """The partition field with that name, otherwise the one with that transform."""
    fields = [field for field in table.metadata.spec().fields if not isinstance(field.transform, VoidTransform)]
    path = transform["arguments"][0].get("column", [])
    if transform["transform"] == "identity" and len(path) == 1:
        named = [field for field in fields if field.name == path[0]]
        if named:
            return named[0]
        if not _has_column(table.metadata.schema(), path, said):
            names = [field.name for field in fields]
            raise InvalidArgumentError(
                f"{table.name} has no partition field {path[0]!r}; it has: {', '.join(names) or 'none'}."
                f"{nearest_hint(path[0], names)}"
            )
    meant = _parsed(table, transform, said)
    for field in fields:
        if field.source_id == meant.source_id and field.transform == meant.transform:
            return field
    raise InvalidArgumentError(
        f"{table.name} is not partitioned by {meant.transform} of {_column(table, meant)!r}; its partition fields are: "
        f"{', '.join(field.name for field in fields) or 'none'}."
    )


def _has_column(schema: Schema, path: list[str], said: Statement) -> bool:
    try:
        column_name(schema, path, case_sensitive=said["case_sensitive"])
    except UnknownColumnError:
        return False
    return True
