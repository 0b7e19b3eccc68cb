"""Row lineage: the id of a row, independent of its file, and the sequence number of its last change.

If a data file stores neither column, or a null, the values are inherited: the row id is the file's `first_row_id` plus
the position, the sequence number is the file's data sequence number.

Source: Iceberg table specification, "Row Lineage" and "Reserved Field IDs".
"""

from __future__ import annotations

from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tableformat.errors import UnsupportedFeatureError

ROW_ID: Final = NestedField(2_147_483_540, "_row_id", LongType(), required=False)
LAST_UPDATED_SEQUENCE_NUMBER: Final = NestedField(
    2_147_483_539, "_last_updated_sequence_number", LongType(), required=False
)
ROW_LINEAGE_FIELDS: Final = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
ROW_LINEAGE_NAMES: Final = tuple(field.name for field in ROW_LINEAGE_FIELDS)


def schema_with_row_lineage(schema: Schema) -> Schema:
    """The schema followed by the two columns. A column of the table with one of the names takes precedence."""
    names = {field.name for field in schema.fields}
    more = (field for field in ROW_LINEAGE_FIELDS if field.name not in names)
    return Schema(
        *schema.fields, *more, schema_id=schema.schema_id, identifier_field_ids=list(schema.identifier_field_ids)
    )


def check_has_row_lineage(format_version: int) -> None:
    """Raise UnsupportedFeatureError below version 3."""
    if format_version < 3:
        raise UnsupportedFeatureError(
            f"{' and '.join(ROW_LINEAGE_NAMES)} need format version 3, but the table has version {format_version}. "
            "Table.upgrade(3) assigns ids to its rows."
        )
