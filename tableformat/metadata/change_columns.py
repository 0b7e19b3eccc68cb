"""The columns of the change feed that describe the change of a row and its commit (CF-5).

No data file stores them. Their names and types are those in Spark's changelog. Their field ids are reserved by Iceberg
for metadata columns. `_commit_snapshot_id` and `_change_ordinal` are Iceberg's names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestamptzType

from tableformat.errors import UnsupportedFeatureError

CHANGE_TYPE: Final = NestedField(2_147_483_543, "_change_type", StringType(), required=True)
COMMIT_VERSION: Final = NestedField(2_147_483_538, "_commit_version", LongType(), required=True)
COMMIT_TIMESTAMP: Final = NestedField(2_147_483_537, "_commit_timestamp", TimestamptzType(), required=True)
COMMIT_SNAPSHOT_ID: Final = NestedField(2_147_483_541, "_commit_snapshot_id", LongType(), required=True)
CHANGE_FIELDS: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP, COMMIT_SNAPSHOT_ID)
CHANGE_ORDINAL: Final = NestedField(2_147_483_542, "_change_ordinal", IntegerType(), required=True)
CHANGELOG_FIELDS: Final = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)
"""The columns of Iceberg's changelog tables, in order."""


def check_changelog_columns(schema: Schema) -> None:
    """Raise UnsupportedFeatureError for a table with a column that has the name of a changelog column."""
    _check_free(schema, CHANGELOG_FIELDS)


def schema_with_change_columns(schema: Schema) -> Schema:
    """CF-5: the schema followed by the columns of the feed.

    Raises UnsupportedFeatureError for a table with a column of such a name, because the name would be ambiguous.
    """
    _check_free(schema, CHANGE_FIELDS)
    return Schema(
        *schema.fields,
        *CHANGE_FIELDS,
        schema_id=schema.schema_id,
        identifier_field_ids=list(schema.identifier_field_ids),
    )


def _check_free(schema: Schema, fields: Iterable[NestedField]) -> None:
    taken = {field.name for field in schema.fields} & {field.name for field in fields}
    if taken:
        raise UnsupportedFeatureError(
            f"the table has a column {min(taken)!r}, which is also the name of a column of the change feed. Rename "
            "the column with update_schema() to read the table's changes."
        )
