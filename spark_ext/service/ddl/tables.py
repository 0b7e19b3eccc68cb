"""Tables: load, create, drop, rename, list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyiceberg.catalog import WAREHOUSE_LOCATION
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.transforms import VoidTransform
from pyiceberg.types import NestedField

from spark_ext.service.ddl.check_constraints import check_properties
from spark_ext.service.ddl.column_defaults import defaults_of, set_defaults
from spark_ext.service.ddl.key_property import KEY, key_of
from spark_ext.service.ddl.range_properties import (
    is_range_property,
    range_partitions_as_properties,
    range_partitions_of_statement,
)
from spark_ext.service.reads import metadata_tables
from spark_ext.service.registry import Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.states import named_states
from spark_ext.service.states.read_options import check_named_state, pin_of_options
from spark_ext.service.states.write_audit_publish import WriteAuditPublish
from spark_ext.service.wire.partition_type import (
    default_fields_of_specs,
    default_partition_type,
    grouping_type,
    partition_arrow_type,
    spark_partition_type,
)
from spark_ext.service.wire.paths import path_of
from spark_ext.service.wire.spark_types import iceberg_type, spark_schema
from spark_ext.service.wire.transforms import spark_transform
from tableformat.catalogs.catalog_properties import TABLE, properties_of_new
from tableformat.errors import AlreadyExistsError, InvalidArgumentError, SnapshotNotFoundError, TableNotFoundError
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.metadata.change_columns import CHANGELOG_FIELDS, check_changelog_columns
from tableformat.metadata.new_names import directory_of
from tableformat.metadata.row_lineage import ROW_LINEAGE_FIELDS, ROW_LINEAGE_NAMES
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.format_version import (
    format_version_of_new,
    refusals_of_version,
    requested_format_version,
)
from tableformat.properties import (
    BLIND_DELETES,
    BLIND_OFF,
    KEY_FIELD_IDS,
    RETIRED_PREFIX,
    TRANSACTION_PREFIX,
    TRANSACTION_RETENTION_MS,
)
from tableformat.range_partitions.retired import retired_from
from tableformat.table import Table
from tableformat.write.rows.checks import check_conditions

PROVIDER: Final = "tableformat"
PROVIDER_PROPERTY: Final = "provider"
"""The provider from USING. Tables created with USING iceberg keep it, because tools such as dbt derive their
capabilities from it."""
CHANGELOG: Final = "changes"
"""The suffix of a table name that selects the rows that its snapshots inserted and deleted."""
ICEBERG: Final = "iceberg"
PARQUET: Final = "parquet"
_PROVIDERS: Final = frozenset({PROVIDER, ICEBERG, PARQUET})
"""Valid providers in USING, including parquet, the default of a Spark session."""
_FILE_FORMAT: Final = "write.format.default"
_TRANSFORMS: Final = {
    "identity": "identity",
    "bucket": "bucket",
    "truncate": "truncate",
    "years": "year",
    "year": "year",
    "months": "month",
    "month": "month",
    "days": "day",
    "day": "day",
    "date": "day",
    "hours": "hour",
    "hour": "hour",
    "date_hour": "hour",
}
_WHOLE_NUMBERS: Final = ("byte", "short", "integer", "long")
_RECORDS: Final = (TRANSACTION_PREFIX, RETIRED_PREFIX)
_IGNORED_PROPERTIES: Final = frozenset(
    {PROVIDER_PROPERTY, "owner", "location", "external", "is_managed_location", "collation", KEY}
)
"""Properties that Spark adds to a new table. The location and the key are passed separately."""


@method("list_tables")
def list_tables(session: Session, request: Request) -> list[str]:
    """Names of the tables in the namespace, without the namespace."""
    session.catalog.list_tables(request.namespace)
    return sorted(identifier[-1] for identifier in session.catalog.iceberg.list_tables(request.namespace))


@method("load_table")
def load_table(session: Session, request: Request) -> dict[str, Any]:
    """A table, a table at a named state, or a metadata table. The state is the current one, or chosen by `version`,
    `timestamp_micros` or `options`."""
    identifier, arguments = request.table, request.arguments
    try:
        if len(identifier) < 2:
            raise TableNotFoundError(f"no table {identifier[0]!r}: include the namespace.")
        table = session.load(identifier)
    except TableNotFoundError:
        if len(identifier) < 3 or not _is_behind_a_table(identifier[-1]):
            raise
        return _load_behind(session, identifier, arguments)
    return describe_table(session, _pin(table, identifier, arguments))


def _is_behind_a_table(name: str) -> bool:
    return metadata_tables.is_metadata_table(name) or named_states.is_state(name) or name.lower() == CHANGELOG


def _load_behind(session: Session, identifier: tuple[str, ...], arguments: dict[str, Any]) -> dict[str, Any]:
    """`db.t.branch_x`, `db.t.files`, `db.t.branch_x.files` or `db.t.changes`, if no table has that name."""
    *table_name, name = identifier
    if named_states.is_state(name):
        check_named_state(identifier, arguments)
        table = session.load(tuple(table_name))
        return describe_table(session, named_states.pin_of_state(table, tuple(table_name), name))
    pin = _pin_behind(session, tuple(table_name), arguments)
    return (
        describe_changelog(session, pin) if name.lower() == CHANGELOG else metadata_tables.describe(session, name, pin)
    )


def _pin_behind(session: Session, identifier: tuple[str, ...], arguments: dict[str, Any]) -> Pin:
    """The table, or the table at a named state, to which the suffix applies."""
    try:
        return _pin(session.load(identifier), identifier, arguments)
    except TableNotFoundError:
        if len(identifier) < 3 or not named_states.is_state(identifier[-1]):
            raise
        check_named_state(identifier, arguments)
        return named_states.pin_of_state(session.load(identifier[:-1]), identifier[:-1], identifier[-1])


def describe_changelog(session: Session, pin: Pin) -> dict[str, Any]:
    """The description of `db.t.changes` for ChangelogTable of the Java side: the table, and the columns that describe
    the change."""
    view = session.view(pin)
    if pin.snapshot_id is not None:
        raise InvalidArgumentError(
            f"{'.'.join(pin.table)}.{CHANGELOG} does not support time travel. Choose its snapshots with the options "
            "start-snapshot-id and end-snapshot-id, or start-timestamp and end-timestamp."
        )
    check_changelog_columns(view.schema)
    return {**describe_table(session, pin), "changelog_columns": spark_schema(Schema(*CHANGELOG_FIELDS))}


@method("load_state")
def load_state(session: Session, request: Request) -> dict[str, Any]:
    """A table or metadata table that was loaded before (`pin`), in the state that the `options` of a read choose.

    For Spark versions that load tables without the options of the read.
    """
    identifier, pin = request.table, Pin.from_json(request.arguments["pin"])
    if named_states.is_state(identifier[-1]) and identifier != pin.table:
        check_named_state(identifier, request.arguments)
        return describe_table(session, pin)
    if pin.snapshot_id is not None or pin.branch != MAIN_BRANCH:
        raise InvalidArgumentError(
            f"{'.'.join(pin.table)}: both {' and '.join(request.arguments['options'])} and VERSION AS OF or "
            "TIMESTAMP AS OF choose a state of the table; use only one of them."
        )
    chosen = _pin(session.pinned(pin), pin.table, request.arguments)
    if identifier[-1].lower() == CHANGELOG and identifier != pin.table:
        return describe_changelog(session, chosen)
    if identifier != pin.table:
        return metadata_tables.describe(session, identifier[-1], chosen)
    return describe_table(session, chosen)


def describe_table(session: Session, pin: Pin) -> dict[str, Any]:
    """The description of a table for LakeTable of the Java side."""
    table, view = session.pinned(pin), session.view(pin)
    metadata = view.metadata
    key = key_names(view.schema, key_field_ids(metadata.schema(), metadata.properties)) if _has_key(view) else ()
    return {
        "is_metadata_table": False,
        "pin": pin.to_json(),
        "uuid": str(metadata.table_uuid),
        "snapshot_id": view.snapshot.snapshot_id if view.snapshot else None,
        "is_time_travel": pin.snapshot_id is not None,
        "schema": spark_schema(view.schema),
        "row_lineage": spark_schema(_row_lineage(view)),
        "partition_type": spark_partition_type(partition_arrow_type(metadata)),
        "partition_fields": spark_partition_type(default_partition_type(metadata)),
        "grouping_fields": spark_partition_type(grouping_type(metadata)),
        "partitioning": _partitioning(metadata.spec(), metadata),
        "fields_of_specs": default_fields_of_specs(metadata),
        "pruning_columns": _pruning_columns(view, key),
        "key": list(key),
        "checks": check_conditions(metadata.properties),
        "retired": [f"{each.text} in tag '{each.tag}'" for each in retired_from(view)],
        "properties": _properties(table),
    }


def _row_lineage(view: SnapshotView) -> Schema:
    """The lineage columns. Empty below version 3, and if a column of the table has the name of a lineage column."""
    if view.metadata.format_version < 3 or {field.name for field in view.schema.fields} & set(ROW_LINEAGE_NAMES):
        return Schema()
    return Schema(*ROW_LINEAGE_FIELDS)


def _has_key(view: SnapshotView) -> bool:
    """Whether the schema of the view has the key columns. The schema of an old snapshot may lack columns of the current
    key."""
    key = key_field_ids(view.metadata.schema(), view.metadata.properties)
    return all(view.schema.find_column_name(field_id) is not None for field_id in key)


def _pin(table: Table, identifier: tuple[str, ...], arguments: dict[str, Any]) -> Pin:
    """The state that options, VERSION AS OF (a snapshot id, tag or branch) or TIMESTAMP AS OF select; otherwise the
    current state."""
    if "options" in arguments:
        return pin_of_options(table, identifier, arguments["options"])
    location = table.iceberg.metadata_location
    version, micros = arguments.get("version"), arguments.get("timestamp_micros")
    if version is not None:
        refs = table.metadata.refs
        is_id = version.isdecimal() and table.metadata.snapshot_by_id(int(version)) is not None
        if version in refs and not is_id:
            if refs[version].snapshot_ref_type == SnapshotRefType.BRANCH:
                return Pin(identifier, location, branch=version)
            return Pin(identifier, location, refs[version].snapshot_id)
        if not version.isdecimal():
            raise SnapshotNotFoundError(
                f"{'.'.join(identifier)} has no snapshot, tag or branch {version!r}. Its tags and branches: "
                f"{', '.join(sorted(refs)) or 'none'}."
            )
        view = table.at(snapshot_id=int(version))
    elif micros is not None:
        view = table.at(as_of=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros))
    else:
        return Pin(identifier, location, branch=WriteAuditPublish.of(arguments, table).branch_read(table))
    assert view.snapshot is not None, "the chosen snapshot exists"
    return Pin(identifier, location, view.snapshot.snapshot_id)


def _partitioning(spec: PartitionSpec, metadata: TableMetadata) -> list[dict[str, Any]]:
    """The default spec with Spark's names for transforms. Void fields are omitted, because they only exist for old
    files."""
    transforms = []
    for field in spec.fields:
        if isinstance(field.transform, VoidTransform):
            continue
        name = metadata.schema().find_column_name(field.source_id)
        if name is None:
            continue
        transforms.append(spark_transform(field.transform, path_of(metadata.schema(), field.source_id)))
    return transforms


def _pruning_columns(view: SnapshotView, key: tuple[str, ...]) -> list[str]:
    """ST-4: columns whose values rule out files when a join determines them at run time."""
    sources = {
        field.source_id for field in view.metadata.spec().fields if not isinstance(field.transform, VoidTransform)
    }
    names = [field.name for field in view.schema.fields if field.field_id in sources]
    return list(dict.fromkeys([*key[:1], *names]))


def _properties(table: Table) -> dict[str, str]:
    properties = {
        PROVIDER_PROPERTY: ICEBERG if table.properties.get(PROVIDER_PROPERTY) == ICEBERG else PROVIDER,
        "location": table.location,
        "format-version": str(table.metadata.format_version),
    }
    if _is_at_place_of_name(table):
        properties["is_managed_location"] = "true"
    told = {name: value for name, value in table.properties.items() if not is_internal_property(name)}
    return {**range_partitions_as_properties(told, table.metadata.schema()), **properties}


def _is_at_place_of_name(table: Table) -> bool:
    """SQ-9: whether the table is in the default directory for its name. If so, a statement that creates it omits the
    location: under another name the table would otherwise use the same directory."""
    *namespace, name = table.iceberg.name()
    warehouse = table.iceberg.catalog.properties.get(WAREHOUSE_LOCATION)
    place = f"/{directory_of('.'.join(namespace))}/{directory_of(name)}"
    return warehouse is not None and table.location == warehouse.rstrip("/") + place


def is_internal_property(name: str) -> bool:
    """SQ-9: whether the property is internal to the library. The key is shown as a key, and records of batches are not
    settings."""
    return name == KEY_FIELD_IDS or (name.startswith(_RECORDS) and name != TRANSACTION_RETENTION_MS)


@method("create_table")
def create_table(session: Session, request: Request) -> dict[str, Any]:
    """CREATE TABLE, with the `columns`, `key` (PRIMARY KEY), `partitioning` and `properties` of the statement."""
    request = with_catalog_properties(session, request)
    creation, _ = stage_creation(session, request)
    version = format_version_of_new(request.arguments["properties"])
    try:
        with refusals_of_version(version, session.catalog.iceberg.name):
            creation.commit_transaction()
    except TableAlreadyExistsError as error:
        raise AlreadyExistsError(f"table {'.'.join(request.table)!r} exists already.") from error
    return describe_table(session, Pin(request.table, session.load(request.table).iceberg.metadata_location))


def with_catalog_properties(session: Session, request: Request) -> Request:
    """SP-65: the request for a new table, with the properties of the catalog and of the statement."""
    of_catalog = session.catalog.iceberg.properties
    properties = properties_of_new(TABLE, of_catalog, request.arguments["properties"])
    return replace(request, arguments={**request.arguments, "properties": properties})


def stage_creation(session: Session, request: Request) -> tuple[CreateTableTransaction, dict[str, str]]:
    """The uncommitted creation of the table in the statement, and the properties of its constraints.

    CK-6: Spark's rules were applied to the constraints of the statement. Constraints among the user's properties count
    as set by hand.
    """
    arguments = request.arguments
    schema = table_schema(arguments["columns"], requested_format_version(arguments["properties"]))
    creation = session.catalog.stage_table(
        request.table,
        schema,
        key=key_of(arguments),
        partition_by=[partition_text(transform) for transform in arguments["partitioning"]],
        properties=with_readable_deletes(user_properties(arguments["properties"]), arguments),
        location=arguments["properties"].get("location"),
        range_partitions=range_partitions_of_statement(arguments["properties"], schema),
    )
    set_defaults(creation, defaults_of(arguments["columns"]))
    checks = check_properties(arguments["checks"], schema)
    if checks:
        creation.set_properties(checks)
    return creation, checks


def with_readable_deletes(properties: dict[str, str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """SP-22: the properties of a new table. A table without a key that is created with USING iceberg is meant for every
    Iceberg reader, so DELETE must not write delete files that only some readers support."""
    is_for_all = arguments["properties"].get(PROVIDER_PROPERTY, PROVIDER).lower() == ICEBERG and not key_of(arguments)
    return {BLIND_DELETES: BLIND_OFF, **properties} if is_for_all else properties


def user_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new table without the ones that Spark adds. USING can name this catalog's own format. It can
    also name Iceberg, which the table then reports as its provider, or Parquet, which becomes its file format as in
    Iceberg."""
    provider = properties.get(PROVIDER_PROPERTY, PROVIDER).lower()
    if provider not in _PROVIDERS:
        raise InvalidArgumentError(
            f"USING {provider}: tables of this catalog are Iceberg tables with Parquet files. Omit USING, or use one "
            f"of {', '.join(sorted(_PROVIDERS))}."
        )
    named = {PARQUET: {_FILE_FORMAT: PARQUET}, ICEBERG: {PROVIDER_PROPERTY: ICEBERG}}.get(provider, {})
    return named | {
        name: value
        for name, value in properties.items()
        if name not in _IGNORED_PROPERTIES and not is_range_property(name)
    }


def table_schema(columns: list[dict[str, Any]], format_version: int) -> Schema:
    """The schema of new columns; field ids are placeholders."""
    fields = []
    for column in columns:
        default = column.get("default")
        if default is not None and format_version < 3:
            raise InvalidArgumentError(
                f"column {column['name']!r}: DEFAULT needs format version 3: TBLPROPERTIES ('format-version' = '3')."
            )
        fields.append(
            NestedField(
                field_id=0,
                name=column["name"],
                field_type=iceberg_type(column["type"], column["name"]),
                required=not column["nullable"],
                doc=column.get("comment"),
            )
        )
    return Schema(*fields)


def partition_text(transform: dict[str, Any]) -> str:
    """A transform of PARTITIONED BY, in the form that `Catalog.create_table` accepts."""
    name = _TRANSFORMS.get(transform.get("transform", "").lower())
    arguments = transform.get("arguments", ())
    columns = [".".join(each["column"]) for each in arguments if "column" in each]
    numbers = [each["literal"] for each in arguments if "literal" in each]
    if name is None or len(columns) != 1:
        raise InvalidArgumentError(
            f"PARTITIONED BY: {transform.get('transform')!r} over {columns} is not a partition transform. Supported: "
            "identity, bucket(16, c), truncate(4, c), years(c), months(c), days(c) and hours(c)."
        )
    widths = [each for each in arguments if "literal" in each]
    if any(each["type"] not in _WHOLE_NUMBERS or int(each["literal"]) < 1 for each in widths):
        raise InvalidArgumentError(
            f"PARTITIONED BY: {name}({', '.join([*numbers, *columns])}): the number must be a whole number above 0."
        )
    quoted = '"' + columns[0].replace('"', '""') + '"'
    return f"{name}({', '.join([*numbers, quoted])})"


@method("drop_table")
def drop_table(session: Session, request: Request) -> bool:
    """Drop the table. Returns whether it existed. Without `purge`, its files are kept."""
    if not session.catalog.table_exists(request.table):
        return False
    session.catalog.drop_table(request.table, purge=request.arguments["purge"])
    return True


@method("rename_table")
def rename_table(session: Session, request: Request) -> None:
    session.catalog.rename_table(request.table, tuple(request.arguments["to"]))
