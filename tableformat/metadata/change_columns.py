"""The columns of the change feed that say what happened to a row, and in which commit (CF-5).

No data file stores them. Names and types are those of Spark's changelog; field ids are the ones that Iceberg reserves
for metadata columns. `_commit_snapshot_id` is Iceberg's name.
"""

from __future__ import annotations

from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from tableformat.errors import UnsupportedFeatureError

CHANGE_TYPE: Final = NestedField(2_147_483_543, "_change_type", StringType(), required=True)
COMMIT_VERSION: Final = NestedField(2_147_483_538, "_commit_version", LongType(), required=True)
COMMIT_TIMESTAMP: Final = NestedField(2_147_483_537, "_commit_timestamp", TimestamptzType(), required=True)
COMMIT_SNAPSHOT_ID: Final = NestedField(2_147_483_541, "_commit_snapshot_id", LongType(), required=True)
CHANGE_FIELDS: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP, COMMIT_SNAPSHOT_ID)


def schema_with_change_columns(schema: Schema) -> Schema:
    """CF-5: the schema with the columns of the feed behind its own.

    UnsupportedFeatureError for a table that has a column of such a name: one of the two could not be asked for.
    """
    taken = {field.name for field in schema.fields} & {field.name for field in CHANGE_FIELDS}
    if taken:
        raise UnsupportedFeatureError(
            f"the table has a column {min(taken)!r}, which is the name of a column of the change feed. Rename it with "
            "update_schema() to read the table's changes."
        )
    return Schema(
        *schema.fields,
        *CHANGE_FIELDS,
        schema_id=schema.schema_id,
        identifier_field_ids=list(schema.identifier_field_ids),
    )
