"""`set_key`: sets the key columns of a table without a key, or after another writer changed the key."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)

from tableformat.errors import InvalidKeyError
from tableformat.keys.table_key import check_key_columns
from tableformat.operations.history.references import commit_updates
from tableformat.properties import KEY_FIELD_IDS
from tableformat.write.rows.order_column import refuse_order_column


def set_key(iceberg: IcebergTable, columns: Sequence[str]) -> None:
    """Set the ordered key property and the identifier fields of the schema in one commit.

    Existing files keep their order and their marker; readers rely on the marker, never on the key. Raises
    InvalidKeyError for an optional column, because existing rows were not checked for nulls.
    """
    schema = iceberg.metadata.schema()
    field_ids = check_key_columns(schema, columns)
    optional = [name for name in columns if not schema.find_field(name).required]
    if optional:
        raise InvalidKeyError(
            f"key columns must be required, but {', '.join(optional)} is optional in this table. "
            "catalog.adopt_table(name, key=[...]) makes the columns required, provided that no row has a null in "
            "them."
        )
    for name in columns:
        refuse_order_column(iceberg.metadata.properties, name, "part of the key")
    updates: tuple[TableUpdate, ...] = ()
    if set(field_ids) != set(schema.identifier_field_ids):
        renewed = Schema(
            *schema.fields,
            schema_id=max(known.schema_id for known in iceberg.metadata.schemas) + 1,
            identifier_field_ids=list(field_ids),
        )
        updates = (
            AddSchemaUpdate.model_validate({"schema": renewed}),
            SetCurrentSchemaUpdate.model_validate({"schema-id": renewed.schema_id}),
        )
    text = ",".join(str(field_id) for field_id in field_ids)
    commit_updates(
        iceberg,
        (AssertCurrentSchemaId.model_validate({"current-schema-id": schema.schema_id}),),
        (*updates, SetPropertiesUpdate(updates={KEY_FIELD_IDS: text})),
    )
