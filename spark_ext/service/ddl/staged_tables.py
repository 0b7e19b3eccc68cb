"""CREATE TABLE AS SELECT, REPLACE TABLE and REPLACE TABLE AS SELECT, each one commit to the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    RemovePropertiesUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)

from spark_ext.service.ddl.check_constraints import check_properties
from spark_ext.service.ddl.column_defaults import defaults_of, with_defaults
from spark_ext.service.ddl.kept_ids import fields_with_kept_ids, schema_with_kept_ids
from spark_ext.service.ddl.key_property import key_of
from spark_ext.service.ddl.range_properties import range_partitions_of_statement
from spark_ext.service.ddl.tables import (
    PROVIDER_PROPERTY,
    describe_table,
    partition_text,
    stage_creation,
    table_schema,
    user_properties,
    with_catalog_properties,
    with_readable_deletes,
)
from spark_ext.service.registry import Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.staging import StagedTable
from tableformat.catalogs.catalog_properties import TABLE, properties_of_new
from tableformat.catalogs.new_table import schema_with_key, sort_order_of_key
from tableformat.commit.metadata_update import upgraded_to_v3
from tableformat.errors import AlreadyExistsError, CommitConflictError, InvalidArgumentError
from tableformat.keys.table_key import check_key_columns
from tableformat.metadata.new_names import refuse_reserved_columns
from tableformat.metadata.partition_text import partition_spec, refuse_names_of_columns
from tableformat.metadata.reachable_files import reachable_files
from tableformat.operations.format_version import FORMAT_VERSION, requested_format_version
from tableformat.operations.history.references import commit_updates
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.run import run_verb
from tableformat.operations.verbs.delete import stage_delete
from tableformat.parquet.bloom_filters.filter_options import check_filter_columns
from tableformat.properties import KEY_FIELD_IDS, ORDER_COLUMN, RANGE_PARTITIONS, RETAIN, checked_properties
from tableformat.range_partitions.definition import define
from tableformat.range_partitions.layout import partition_field_of
from tableformat.range_partitions.property_text import check_metrics, refuse_coverage_set_by_hand, to_property
from tableformat.range_partitions.retention import check_retention
from tableformat.storage.storage import delete_if_present
from tableformat.write.rows.checks import is_check_property, refuse_check_set_by_hand
from tableformat.write.rows.order_column import check_order_column

CREATE = "create"
REPLACE = "replace"


@method("stage_table")
def stage_table(session: Session, request: Request) -> dict[str, Any]:
    """Start to create a table. `kind` is "create", "replace" or "create-or-replace". Nothing is visible yet."""
    kind = request.arguments["kind"]
    if kind == "create-or-replace":
        kind = REPLACE if session.catalog.table_exists(request.table) else CREATE
    if kind == CREATE:
        request = with_catalog_properties(session, request)
    staged = _created(session, request) if kind == CREATE else _replaced(session, request)
    identifier = session.staging.add(staged)
    if kind == REPLACE:
        table = session.load(identifier)
        arguments = {**request.arguments, "properties": _of_replaced(session, table.metadata, request)}
        commit_updates(table.iceberg, (), _replacing_updates(table.metadata, arguments))
    return describe_table(session, Pin(identifier, session.load(identifier).iceberg.metadata_location))


@method("commit_staged_table")
def commit_staged_table(session: Session, request: Request) -> None:
    """Make the table visible, with all rows written to it."""
    identifier = tuple(request.arguments["pin"]["table"])
    staged = session.staging.staged(identifier)
    if staged is None:
        raise CommitConflictError(
            "the Python process of the catalog was restarted while the statement ran. Nothing was changed. Run the "
            "statement again."
        )
    if staged.base is not None and not staged.is_written:
        _empty(session, identifier)
    # From here on the catalog decides the outcome: an abort must not remove files of a table that may exist.
    session.staging.remove(identifier)
    try:
        _publish(session, staged)
    except (CommitFailedException, CommitConflictError) as error:
        _remove_new_files(staged)
        raise CommitConflictError(
            f"table {'.'.join(staged.identifier)} was changed by another commit while the statement ran: {error}. "
            "Nothing was changed. Run the statement again."
        ) from error
    except (TableAlreadyExistsError, AlreadyExistsError) as error:
        _remove_new_files(staged)
        raise AlreadyExistsError(f"table {'.'.join(staged.identifier)!r} exists already.") from error


@method("abort_staged_table")
def abort_staged_table(session: Session, request: Request) -> None:
    """Discard the table and remove the files of its snapshots, which never become visible."""
    staged = session.staging.remove(request.arguments["pin"]["table"])
    if staged is not None:
        _remove_new_files(staged)


def _created(session: Session, request: Request) -> StagedTable:
    arguments = request.arguments
    creation, checks = stage_creation(session, request)
    handle = creation._table
    metadata = handle.metadata
    metadata = metadata.model_copy(update={"properties": {**metadata.properties, **checks}})
    if requested_format_version(arguments["properties"]) >= 3 and metadata.format_version < 3:
        metadata = upgraded_to_v3(metadata)
    if not metadata.spec().is_unpartitioned():
        specs = [*metadata.partition_specs, PartitionSpec(spec_id=1)]
        metadata = metadata.model_copy(update={"partition_specs": specs})
    return StagedTable(request.table, None, creation, metadata, handle.io)


def _replaced(session: Session, request: Request) -> StagedTable:
    """ST-3: the replaced table is the one in the state that the statement reads."""
    pin = request.arguments.get("pin")
    table = session.load(request.table) if pin is None else session.pinned(Pin.from_json(pin))
    properties = request.arguments["properties"]
    location = properties.get("location")
    if location is not None and location.rstrip("/") != table.location.rstrip("/"):
        raise InvalidArgumentError(
            f"REPLACE TABLE {table.name} cannot change the location of the table, {table.location}."
        )
    if requested_format_version(properties, table.metadata.format_version) != table.metadata.format_version:
        raise InvalidArgumentError(
            f"REPLACE TABLE {table.name} cannot change the format version. Use ALTER TABLE ... SET TBLPROPERTIES."
        )
    return StagedTable(request.table, table.metadata, None, table.metadata, table.iceberg.io)


def _of_replaced(session: Session, metadata: TableMetadata, request: Request) -> dict[str, str]:
    """SP-65: the properties of the statement and the catalog. A default of the catalog is omitted if the table already
    has that value."""
    given = request.arguments["properties"]
    merged = properties_of_new(TABLE, session.catalog.iceberg.properties, {**metadata.properties, **given})
    return {name: value for name, value in merged.items() if name in given or metadata.properties.get(name) != value}


_OF_OLD_TABLE: Final = frozenset({KEY_FIELD_IDS, ORDER_COLUMN, RANGE_PARTITIONS, RETAIN, PROVIDER_PROPERTY})
"""Properties that name columns, and the provider of USING. A table that replaces another does not inherit them."""


def _replacing_updates(metadata: TableMetadata, arguments: Mapping[str, Any]) -> tuple[TableUpdate, ...]:
    """Updates that set the schema, spec, sort order and properties. The history of the table stays readable (SP-53)."""
    defaults = defaults_of(arguments["columns"])
    columns = table_schema(arguments["columns"], metadata.format_version)
    schema = schema_with_kept_ids(columns, defaults, metadata)
    refuse_reserved_columns(schema, metadata.schema())
    key = check_key_columns(schema, key_of(arguments))
    schema = schema_with_key(schema, key)
    schema = Schema(
        *with_defaults(schema, defaults).fields,
        schema_id=max(each.schema_id for each in metadata.schemas) + 1,
        identifier_field_ids=schema.identifier_field_ids,
    )
    given = user_properties(arguments["properties"])
    properties = checked_properties(with_readable_deletes(given, arguments))
    properties.pop(FORMAT_VERSION, None)
    refuse_check_set_by_hand(properties, {}, schema)
    check_filter_columns(properties, schema)
    check_order_column(properties, schema)
    refuse_coverage_set_by_hand(properties)
    if key:
        properties[KEY_FIELD_IDS] = ",".join(map(str, key))
    properties |= check_properties(arguments["checks"], schema)
    partition_by = [partition_text(each) for each in arguments["partitioning"]]
    ranges = range_partitions_of_statement(arguments["properties"], schema)
    if ranges is not None:
        defined = define(ranges, schema)
        properties[RANGE_PARTITIONS] = to_property(defined)
        field = partition_field_of(defined, partition_spec(schema, partition_by))
        partition_by += [] if field is None else [field]
    check_metrics(given, properties, schema)
    check_retention(given, properties, schema)
    removed = [
        name
        for name in metadata.properties
        if (name in _OF_OLD_TABLE or is_check_property(name)) and name not in properties
    ]
    return (
        *_schema_updates(metadata, schema),
        *_spec_updates(metadata, schema, partition_by),
        *_sort_order_updates(metadata, sort_order_of_key(key)),
        *([RemovePropertiesUpdate(removals=removed)] if removed else []),
        *([SetPropertiesUpdate(updates=properties)] if properties else []),
    )


def _schema_updates(metadata: TableMetadata, schema: Schema) -> tuple[TableUpdate, ...]:
    """Updates that set the schema. An existing schema is reused: a catalog server would find the duplicate and ignore
    the new id."""
    known = next((each for each in metadata.schemas if each == schema), None)
    if known is not None:
        return (SetCurrentSchemaUpdate.model_validate({"schema-id": known.schema_id}),)
    return (
        AddSchemaUpdate.model_validate({"schema": schema}),
        SetCurrentSchemaUpdate.model_validate({"schema-id": schema.schema_id}),
    )


def _spec_updates(metadata: TableMetadata, schema: Schema, partition_by: list[str]) -> tuple[TableUpdate, ...]:
    """Updates that set the spec. An existing spec is reused."""
    given = partition_spec(schema, partition_by)
    refuse_names_of_columns(given, schema)
    fields = fields_with_kept_ids(given, metadata)
    known = next((spec for spec in metadata.partition_specs if spec.fields == fields), None)
    if known is not None:
        return (SetDefaultSpecUpdate.model_validate({"spec-id": known.spec_id}),)
    spec = PartitionSpec(*fields, spec_id=max(each.spec_id for each in metadata.partition_specs) + 1)
    return (
        AddPartitionSpecUpdate(spec=spec),
        SetDefaultSpecUpdate.model_validate({"spec-id": spec.spec_id}),
    )


def _sort_order_updates(metadata: TableMetadata, order: SortOrder) -> tuple[TableUpdate, ...]:
    known = next((each for each in metadata.sort_orders if each.fields == order.fields), None)
    if known is not None:
        return (SetDefaultSortOrderUpdate.model_validate({"sort-order-id": known.order_id}),)
    added = SortOrder(*order.fields, order_id=max(each.order_id for each in metadata.sort_orders) + 1)
    return (
        AddSortOrderUpdate.model_validate({"sort-order": added}),
        SetDefaultSortOrderUpdate.model_validate({"sort-order-id": added.order_id}),
    )


def _empty(session: Session, identifier: tuple[str, ...]) -> None:
    """Delete all rows, for REPLACE TABLE without a query."""

    def verb(draft: Draft) -> None:
        draft.begin_verb()
        stage_delete(draft, None, mode="scan")

    iceberg = session.load(identifier).iceberg
    run_verb(verb, lambda: Draft(iceberg, MAIN_BRANCH, caches=session.caches), CommitOptions(), one_shot=True)


def _publish(session: Session, staged: StagedTable) -> None:
    backend = session.catalog.iceberg
    if staged.creation is not None:
        staged.creation._updates += staged.updates
        staged.creation.commit_transaction()
        return
    base = staged.base
    assert base is not None, "a table that is not created is replaced"
    table = IcebergTable(staged.identifier, base, "", staged.io, backend)
    commit_updates(table, _unchanged(base), staged.updates)


def _unchanged(base: TableMetadata) -> tuple[TableRequirement, ...]:
    """Requirements that the replaced table has not changed: the new ids are still free and no rows were added."""
    head = base.refs.get(MAIN_BRANCH)
    return (
        AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": head.snapshot_id if head else None}),
        AssertCurrentSchemaId.model_validate({"current-schema-id": base.current_schema_id}),
        AssertLastAssignedFieldId.model_validate({"last-assigned-field-id": base.last_column_id}),
        AssertDefaultSpecId.model_validate({"default-spec-id": base.default_spec_id}),
        AssertLastAssignedPartitionId.model_validate({"last-assigned-partition-id": base.last_partition_id}),
    )


def _remove_new_files(staged: StagedTable) -> None:
    """Remove the files that only snapshots of this statement reference."""
    known = {snapshot.snapshot_id for snapshot in staged.base.snapshots} if staged.base is not None else set()
    new = [snapshot for snapshot in staged.metadata.snapshots if snapshot.snapshot_id not in known]
    if not new:
        return
    nothing_else: dict[str, list[Any]] = {"metadata_log": [], "statistics": [], "partition_statistics": []}
    made = staged.metadata.model_copy(update={"snapshots": new, **nothing_else})
    files = reachable_files(made, "", staged.io) - {""}
    if staged.base is not None:
        files -= reachable_files(staged.base, "", staged.io)
    for location in sorted(files):
        delete_if_present(staged.io, location)
