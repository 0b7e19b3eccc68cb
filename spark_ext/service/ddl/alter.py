"""ALTER TABLE: columns, properties, comment and key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from pyiceberg.exceptions import ResolveError, ValidationError
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.transforms import VoidTransform

from spark_ext.service.ddl.check_constraints import (
    add_checks,
    drop_constraint,
)
from spark_ext.service.ddl.key_property import KEY, key_columns
from spark_ext.service.ddl.range_properties import refuse_range_property
from spark_ext.service.ddl.tables import describe_table
from spark_ext.service.registry import Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.states.named_states import is_state, pin_of_state
from spark_ext.service.states.write_audit_publish import WriteAuditPublish
from spark_ext.service.wire.spark_types import default_value, iceberg_type
from tableformat.errors import InvalidArgumentError, TableFormatError
from tableformat.operations.history.references import remove_properties, set_properties
from tableformat.properties import KEY_FIELD_IDS
from tableformat.table import Table
from tableformat.write.rows.checks import is_check_property, refuse_column_of_check

Change: TypeAlias = Mapping[str, Any]
"""One change, in the form that `DdlJson` of the Java side writes."""

_PROPERTY_CHANGES: Final = frozenset({"SetProperty", "RemoveProperty"})
_FIXED_PROPERTIES: Final = frozenset({"provider", "location", "owner", KEY_FIELD_IDS})
"""Properties that ALTER TABLE ... SET TBLPROPERTIES cannot change."""


@method("alter_table")
def alter_table(session: Session, request: Request) -> dict[str, Any]:
    """Apply the changes. Columns are changed in one commit and properties in another; a statement contains only one
    kind."""
    identifier, name = request.table, request.table[-1]
    by_state = len(identifier) > 2 and is_state(name) and not session.catalog.table_exists(identifier)
    identifier = identifier[:-1] if by_state else identifier
    table = session.load(identifier)
    changes: list[Change] = request.arguments["changes"]
    _alter_columns(table, [change for change in changes if change["change"] in _COLUMN_CHANGES])
    _alter_properties(table, [change for change in changes if change["change"] in _PROPERTY_CHANGES])
    for change in changes:
        if change["change"] == "AddConstraint":
            if change["key"]:
                table.set_key(change["key"])
            add_checks(table, change["checks"], change["validated_version"])
        elif change["change"] == "DropConstraint":
            drop_constraint(table, change["constraint"], if_exists=change["if_exists"])
    altered = session.load(identifier)
    branch = WriteAuditPublish.of(request.arguments, altered).branch_read(altered)
    pin = Pin(identifier, altered.iceberg.metadata_location, branch=branch)
    return describe_table(session, pin_of_state(altered, identifier, name) if by_state else pin)


def _alter_columns(table: Table, changes: Sequence[Change]) -> None:
    if not changes:
        return
    with _as_invalid_argument(table), table.update_schema() as update:
        for change in changes:
            _COLUMN_CHANGES[change["change"]](update, change, table.metadata)


@contextmanager
def _as_invalid_argument(table: Table) -> Iterator[None]:
    """Report an error of PyIceberg as a mistake in the statement."""
    try:
        yield
    except TableFormatError:
        raise
    except (ValueError, ValidationError, ResolveError) as error:
        raise InvalidArgumentError(f"ALTER TABLE {table.name}: {error}") from error


def _add(update: UpdateSchema, change: Change, metadata: TableMetadata) -> None:
    path = _path(change)
    default = change.get("default")
    if default is not None and metadata.format_version < 3:
        raise _needs_version_3(path)
    column = iceberg_type(change["type"], ".".join(path))
    update.add_column(
        path,
        column,
        doc=change.get("comment"),
        required=not change["nullable"],
        default_value=None if default is None else default_value(default, column, path[-1]),
    )
    _move(update, change, metadata)


def _needs_version_3(path: Sequence[str]) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"column {path[-1]!r}: DEFAULT needs format version 3. ALTER TABLE ... SET TBLPROPERTIES "
        "('format-version' = '3') upgrades the table."
    )


def _delete(update: UpdateSchema, change: Change, metadata: TableMetadata) -> None:
    path = _path(change)
    field_id = metadata.schema().find_field(".".join(path)).field_id
    sources = {
        field.source_id: field.name
        for field in metadata.spec().fields
        if not isinstance(field.transform, VoidTransform)
    }
    if field_id in metadata.schema().identifier_field_ids:
        raise InvalidArgumentError(f"column {path[-1]!r} belongs to the key and cannot be dropped.")
    if field_id in sources:
        raise InvalidArgumentError(f"column {path[-1]!r} is the source of the partition field {sources[field_id]!r}.")
    refuse_column_of_check(metadata.properties, path[-1])
    update.delete_column(path)


def _rename(update: UpdateSchema, change: Change, metadata: TableMetadata) -> None:
    refuse_column_of_check(metadata.properties, _path(change)[-1])
    update.rename_column(_path(change), change["to"])


def _retype(update: UpdateSchema, change: Change, _metadata: TableMetadata) -> None:
    path = _path(change)
    update.update_column(path, field_type=iceberg_type(change["type"], ".".join(path)))


def _require(update: UpdateSchema, change: Change, metadata: TableMetadata) -> None:
    path = _path(change)
    field_id = metadata.schema().find_field(".".join(path)).field_id
    if change["nullable"] and field_id in metadata.schema().identifier_field_ids:
        raise InvalidArgumentError(f"column {path[-1]!r} belongs to the key and must be NOT NULL.")
    update.update_column(path, required=not change["nullable"])


def _set_default(update: UpdateSchema, change: Change, metadata: TableMetadata) -> None:
    """SET and DROP DEFAULT: the value of the column in rows that are added later."""
    path, default = _path(change), change.get("default")
    if default is not None and metadata.format_version < 3:
        raise _needs_version_3(path)
    column = metadata.schema().find_field(".".join(path)).field_type
    update.set_default_value(path, None if default is None else default_value(default, column, path[-1]))


def _comment(update: UpdateSchema, change: Change, _metadata: TableMetadata) -> None:
    update.update_column(_path(change), doc=change["comment"])


def _move(update: UpdateSchema, change: Change, _metadata: TableMetadata) -> None:
    path = _path(change)
    if change.get("first"):
        update.move_first(path)
    elif change.get("after") is not None:
        update.move_after(path, (*path[:-1], change["after"]))


def _path(change: Change) -> tuple[str, ...]:
    return tuple(change["column"])


_COLUMN_CHANGES: Final[dict[str, Callable[[UpdateSchema, Change, TableMetadata], None]]] = {
    "AddColumn": _add,
    "DeleteColumn": _delete,
    "RenameColumn": _rename,
    "UpdateColumnType": _retype,
    "UpdateColumnNullability": _require,
    "UpdateColumnComment": _comment,
    "UpdateColumnPosition": _move,
    "UpdateColumnDefaultValue": _set_default,
}


def _alter_properties(table: Table, changes: Sequence[Change]) -> None:
    for change in changes:
        refuse_range_property(change["property"])
        if change["property"] in _FIXED_PROPERTIES or is_check_property(change["property"]):
            raise InvalidArgumentError(f"the table property {change['property']!r} cannot be changed.")
    added = {change["property"]: change["value"] for change in changes if change["change"] == "SetProperty"}
    key = added.pop(KEY, None)
    if key is not None:
        table.set_key(key_columns(key))
    # Spark requires that removing a property that does not exist succeeds.
    removed = [
        change["property"]
        for change in changes
        if change["change"] == "RemoveProperty" and change["property"] in table.properties
    ]
    if added:
        set_properties(table.iceberg, added)
    # As for Spark's own tables, UNSET of a property that does not exist changes nothing.
    remove_properties(table.iceberg, [name for name in removed if name in table.properties])
