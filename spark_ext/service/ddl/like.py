"""CREATE TABLE ... LIKE: a new table with the columns, key, layout and properties of another, without its rows."""

from __future__ import annotations

import json
from typing import Final

from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import SortDirection
from pyiceberg.table.update.sorting import UpdateSortOrder

from spark_ext.service.ddl.column_defaults import set_defaults
from spark_ext.service.ddl.tables import is_internal_property
from spark_ext.service.registry import Request, method
from spark_ext.service.session import Session
from spark_ext.service.wire.partition_type import default_fields
from tableformat.errors import AlreadyExistsError
from tableformat.operations.format_version import FORMAT_VERSION, refusals_of_version
from tableformat.properties import PUBLISH_TARGET_PREFIX, RANGE_PARTITIONS
from tableformat.write.rows.checks import is_check_property

_OF_ONE_TABLE: Final = ("schema.name-mapping.default", "write.data.path", "write.metadata.path", RANGE_PARTITIONS)
"""Properties that contain field ids or directories of the source. Range partitions are copied separately."""


@method("create_table_like")
def create_table_like(session: Session, request: Request) -> None:
    """SQ-11: create the table `target` from the table of the request. `properties` override the source's."""
    arguments = request.arguments
    target = tuple(arguments["target"])
    if arguments["if_not_exists"] and session.catalog.table_exists(target):
        return
    source = session.load(request.table)
    metadata, schema = source.metadata, source.metadata.schema()
    version = metadata.format_version
    creation = session.catalog.stage_table(
        target,
        schema,
        key=source.key,
        partition_by=_partition_by(metadata),
        properties={FORMAT_VERSION: str(version), **_passed_on(metadata), **arguments["properties"]},
        location=arguments["location"],
    )
    set_defaults(creation, {each.name: each.write_default for each in schema.fields if each.write_default is not None})
    bound = {name: value for name, value in metadata.properties.items() if is_check_property(name)}
    if RANGE_PARTITIONS in metadata.properties:
        bound[RANGE_PARTITIONS] = _with_new_ids(metadata.properties[RANGE_PARTITIONS], schema, creation)
    if bound:
        creation.set_properties(bound)
    if not source.key:
        _set_sort_order(creation, metadata)
    try:
        with refusals_of_version(version, session.catalog.iceberg.name):
            creation.commit_transaction()
    except TableAlreadyExistsError as error:
        raise AlreadyExistsError(f"table {'.'.join(target)!r} exists already.") from error


def _passed_on(metadata: TableMetadata) -> dict[str, str]:
    return {
        name: value
        for name, value in metadata.properties.items()
        if name not in _OF_ONE_TABLE
        and not name.startswith(PUBLISH_TARGET_PREFIX)
        and not is_internal_property(name)
        and not is_check_property(name)
    }


def _partition_by(metadata: TableMetadata) -> list[str]:
    texts = []
    for field in default_fields(metadata):
        column = metadata.schema().find_column_name(field.source_id) or ""
        quoted = '"' + column.replace('"', '""') + '"'
        name, bracket, number = str(field.transform).partition("[")
        texts.append(f"{name}({number.rstrip(']')}, {quoted})" if bracket else f"{name}({quoted})")
    return texts


def _with_new_ids(text: str, schema: Schema, creation: CreateTableTransaction) -> str:
    """RP-1: the range partitions, with the field ids of the same columns in the new table."""
    value = json.loads(text)
    fresh = creation._table.metadata.schema()
    names = [schema.find_column_name(field_id) or "" for field_id in value["field-ids"]]
    return json.dumps(
        {**value, "field-ids": [fresh.find_field(name).field_id for name in names]}, separators=(",", ":")
    )


def _set_sort_order(creation: CreateTableTransaction, metadata: TableMetadata) -> None:
    """Set the sort order of a table without a key. With a key, the order follows from the key."""
    order = metadata.sort_order().fields
    builder = UpdateSortOrder(creation)
    for field in order:
        add = builder.asc if field.direction is SortDirection.ASC else builder.desc
        add(metadata.schema().find_column_name(field.source_id) or "", field.transform, field.null_order)
    if order:
        creation._apply(builder._commit()[0])
