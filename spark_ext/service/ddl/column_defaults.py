"""DEFAULT of the columns of a new table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction
from pyiceberg.table.update import AddSchemaUpdate

from spark_ext.service.wire.spark_types import default_value, iceberg_type


def defaults_of(columns: list[dict[str, Any]]) -> dict[str, Any]:
    """The DEFAULT of each new column that has one. PyIceberg drops defaults when it assigns field ids to a schema."""
    return {
        column["name"]: default_value(column["default"], iceberg_type(column["type"], column["name"]), column["name"])
        for column in columns
        if column.get("default") is not None
    }


def with_defaults(schema: Schema, defaults: Mapping[str, Any]) -> Schema:
    """The schema with these defaults as write defaults only: no row of a new table is older than its columns."""
    fields = (
        field.model_copy(update={"write_default": defaults[field.name]}) if field.name in defaults else field
        for field in schema.fields
    )
    return Schema(*fields, schema_id=schema.schema_id, identifier_field_ids=schema.identifier_field_ids)


def set_defaults(creation: CreateTableTransaction, defaults: Mapping[str, Any]) -> None:
    """Add the defaults to a creation that is not committed yet."""
    if not defaults:
        return
    schema = with_defaults(creation._table.metadata.schema(), defaults)
    creation._table.metadata = creation._table.metadata.model_copy(update={"schemas": [schema]})
    creation._updates = tuple(
        AddSchemaUpdate.model_validate({"schema": schema}) if isinstance(update, AddSchemaUpdate) else update
        for update in creation._updates
    )
