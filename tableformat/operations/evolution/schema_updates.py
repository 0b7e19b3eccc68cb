"""Changes of columns and partition fields with PyIceberg's builders, whose refusals become errors of this library.

A change that would remove a column of the key, a partition field or the range partitions is refused; the error explains
what to do first.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa
from pydantic import ValidationError as ModelError
from pyiceberg.exceptions import ResolveError, ValidationError
from pyiceberg.schema import Schema, index_by_id, index_name_by_id
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertDefaultSpecId, SetPropertiesUpdate, TableRequirement
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.table.update.spec import UpdateSpec
from pyiceberg.transforms import BucketTransform, Transform, TruncateTransform, VoidTransform, parse_transform
from pyiceberg.types import IcebergType, StructType

from tableformat.arguments import checked_arguments, shown
from tableformat.commit.coverage_change import coverage_is
from tableformat.commit.metadata_commit import ids_of_schemas_are_free
from tableformat.errors import InvalidArgumentError, TableFormatError
from tableformat.metadata.arrow_schema import iceberg_schema
from tableformat.metadata.new_names import refuse_reserved_columns
from tableformat.metadata.partition_text import free_name
from tableformat.operations.evolution.column_names import with_current_names
from tableformat.operations.history.held_checks import checks_are
from tableformat.operations.history.references import commit_updates
from tableformat.properties import NAME_MAPPING, RANGE_PARTITIONS, name_mapping
from tableformat.range_partitions.definition import ranges_text
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.range_partitions.retention import refuse_column_of_retention
from tableformat.write.data_files.stored_columns import refuse_unwritten_types
from tableformat.write.rows.checks import refuse_column_of_check
from tableformat.write.rows.order_column import refuse_order_column

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Kind = TypeVar("_Kind", bound=type)


def _refusals_are_ours(kind: _Kind) -> _Kind:
    """A class decorator: public methods, including inherited ones, check their arguments, and refusals of PyIceberg
    become InvalidArgumentError."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            setattr(kind, name, _refusing(checked_arguments(method)))
    return kind


def _refusing(method: Callable[_P, _R]) -> Callable[_P, _R]:
    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except TableFormatError:
            raise
        except ModelError as error:
            told = "; ".join(str(each["msg"]) for each in error.errors())
            raise InvalidArgumentError(f"{told}. Nothing was changed.") from error
        except (ValueError, ValidationError, ResolveError) as error:
            raise InvalidArgumentError(f"{str(error).rstrip('.')}. Nothing was changed.") from error

    return call


@_refusals_are_ours
class SchemaChanges(UpdateSchema):
    """PyIceberg's builder of a new schema. The schema is committed at the end of the `with` block."""

    def __init__(self, iceberg: IcebergTable) -> None:
        self._iceberg = iceberg
        self._base = iceberg.metadata
        self._names_in_files = name_mapping(self._base.properties)
        super().__init__(Transaction(_pinned(iceberg)))

    def add_column(
        self,
        path: str | tuple[str, ...],
        field_type: IcebergType | pa.DataType,
        doc: str | None = None,
        required: bool = False,
        default_value: Any = None,
    ) -> UpdateSchema:
        """Add a column. Its type is a type of PyIceberg or of pyarrow."""
        return super().add_column(path, self._iceberg_type(path, field_type), doc, required, default_value)

    def delete_column(self, path: str | tuple[str, ...]) -> UpdateSchema:
        """Drop a column. Raises InvalidArgumentError for a key column, the source of a partition field, a range column,
        the order column, and a column that a CHECK constraint names (CK-4)."""
        name, metadata = _dotted(path), self._base
        field_id = self._schema.find_field(name, self._case_sensitive).field_id
        if field_id in metadata.schema().identifier_field_ids:
            raise InvalidArgumentError(
                f"column {name!r} belongs to the key and cannot be dropped. Choose another key with set_key() first."
            )
        _refuse_partition_source(metadata, field_id, name)
        _refuse_range_column(metadata, field_id, f"column {name!r} cannot be dropped")
        refuse_column_of_check(metadata.properties, name.rpartition(".")[2])
        refuse_column_of_retention(metadata.properties, metadata.schema(), name)
        refuse_order_column(metadata.properties, self._known_name(path), "dropped")
        return super().delete_column(path)

    def rename_column(self, path_from: str | tuple[str, ...], new_name: str) -> UpdateSchema:
        """Rename a column. Raises InvalidArgumentError for the order column, and if a CHECK constraint (CK-4) or a
        retention (MT-108) names the column."""
        refuse_column_of_retention(self._base.properties, self._base.schema(), _dotted(path_from))
        refuse_order_column(self._base.properties, self._known_name(path_from), "renamed")
        refuse_column_of_check(self._base.properties, _dotted(path_from).rpartition(".")[2])
        return super().rename_column(path_from, new_name)

    def make_column_optional(self, path: str | tuple[str, ...]) -> UpdateSchema:
        """Let a column be null. Raises InvalidArgumentError for a column of the key, and for a range column."""
        self._refuse_optional(path)
        return super().make_column_optional(path)

    def update_column(
        self,
        path: str | tuple[str, ...],
        field_type: IcebergType | pa.DataType | None = None,
        required: bool | None = None,
        doc: str | None = None,
    ) -> UpdateSchema:
        """Change type, nullability or comment of a column. The type is of PyIceberg or of pyarrow. Raises
        InvalidArgumentError if a column of the key, or a range column, would become optional."""
        if required is False:
            self._refuse_optional(path)
        kind = None if field_type is None else self._iceberg_type(path, field_type)
        return super().update_column(path, kind, required, doc)

    def _iceberg_type(self, path: str | tuple[str, ...], kind: IcebergType | pa.DataType) -> IcebergType:
        """The type to store, as in a new table. Raises InvalidArgumentError for an Arrow type without one."""
        if not isinstance(kind, pa.DataType):
            return kind
        columns = pa.schema([pa.field(path if isinstance(path, str) else path[-1], kind)])
        return iceberg_schema(columns, format_version=self._base.format_version).fields[0].field_type

    def set_identifier_fields(self, *fields: str) -> None:
        """Raises InvalidArgumentError: identifier fields have no order, but a key has one (FM-4)."""
        raise InvalidArgumentError(
            f"the identifier fields of a table are its key columns, whose order matters. Use set_key({list(fields)})."
        )

    def commit(self) -> None:
        """Commit the schema, and the names of its columns in files without field ids (LK-19). Raises
        CommitConflictError if another commit changed the schema in the meantime."""
        self._refuse_emptied_structs()
        updates, requirements = self._commit()
        if updates:
            refuse_reserved_columns(self._apply(), self._base.schema())
            refuse_unwritten_types(self._apply())
        if updates and self._names_in_files is not None:
            mapping = with_current_names(self._names_in_files, self._apply()).model_dump_json()
            updates = (*updates, SetPropertiesUpdate(updates={NAME_MAPPING: mapping}))
        if updates:
            free = ids_of_schemas_are_free(self._base, updates, self._iceberg.catalog)
            commit_updates(self._iceberg, (*requirements, *free, *self._what_names_columns_is()), updates)

    def _refuse_emptied_structs(self) -> None:
        """FM-22: raise InvalidArgumentError if a struct would lose its last field but stay."""
        for field in index_by_id(self._schema).values():
            kind = field.field_type
            if not isinstance(kind, StructType) or field.field_id in self._deletes or self._adds.get(field.field_id):
                continue
            if kind.fields and all(child.field_id in self._deletes for child in kind.fields):
                name = self._schema.find_column_name(field.field_id)
                raise InvalidArgumentError(
                    f"column {name!r} would become a struct without fields, which Parquet cannot store. Nothing was "
                    "changed. Drop the column itself, or add a field to it first."
                )

    def _what_names_columns_is(self) -> tuple[TableRequirement, ...]:
        """CK-4, RP-2: the requirements if a column is dropped, renamed or made optional. The partition fields,
        constraints and range partitions must still be the ones that were checked for its name."""
        metadata, catalog = self._base, self._iceberg.catalog
        if _keeps_columns(metadata.schema(), self._apply()):
            return ()
        spec = AssertDefaultSpecId.model_validate({"default-spec-id": metadata.default_spec_id})
        coverage = coverage_is(metadata.properties.get(RANGE_PARTITIONS), catalog)
        return (spec, *checks_are(metadata, catalog), *coverage)

    def _known_name(self, path: str | tuple[str, ...]) -> str:
        """The name of the column in the table, which may differ from the given one in case."""
        field_id = self._schema.find_field(_dotted(path), self._case_sensitive).field_id
        return self._schema.find_column_name(field_id) or _dotted(path)

    def _refuse_optional(self, path: str | tuple[str, ...]) -> None:
        name = _dotted(path)
        field_id = self._schema.find_field(name, self._case_sensitive).field_id
        if field_id in self._schema.identifier_field_ids:
            raise InvalidArgumentError(f"column {name!r} belongs to the key and cannot be optional.")
        _refuse_range_column(self._base, field_id, f"column {name!r} cannot be optional")


@_refusals_are_ours
class SpecChanges(UpdateSpec):
    """PyIceberg's builder of a new partition spec. The spec is committed at the end of the `with` block."""

    def __init__(self, iceberg: IcebergTable) -> None:
        self._iceberg = iceberg
        super().__init__(Transaction(_pinned(iceberg)))

    def add_field(
        self,
        source_column_name: str,
        transform: Any,
        partition_field_name: str | None = None,
    ) -> UpdateSpec:
        """Add a partition field. Raises InvalidArgumentError for a transform that the column does not support."""
        parsed = parse_transform(transform) if isinstance(transform, str) else transform
        if not isinstance(parsed, Transform):
            raise InvalidArgumentError(f"transform must be a transform or its text, not {shown(transform)}.")
        number = parsed.num_buckets if isinstance(parsed, BucketTransform) else 1
        number = parsed.width if isinstance(parsed, TruncateTransform) else number
        if number < 1:
            raise InvalidArgumentError(f"{parsed} divides by {number}; the number must be above 0.")
        return super().add_field(source_column_name, parsed, partition_field_name)

    def remove_field(self, name: str) -> UpdateSpec:
        """Remove a partition field. Another field of the same change may then use its name."""
        super().remove_field(name)
        del self._name_to_field[name]
        return self

    def commit(self) -> None:
        """Commit the spec. Raises CommitConflictError if another commit changed it in the meantime."""
        try:
            updates, requirements = self._commit()
        except ValueError as error:
            _, found, name = str(error).partition("name that exists in schema: ")
            if not found:
                raise
            free = free_name(name, self._iceberg.metadata.schema())
            raise InvalidArgumentError(
                f"the partition field {name!r} would have the same name as a column. Nothing was changed. Choose "
                f"another name, such as {free!r}: add_field(column, transform, {free!r})."
            ) from error
        if updates:
            commit_updates(self._iceberg, requirements, updates)


def _pinned(iceberg: IcebergTable) -> IcebergTable:
    """A copy of the handle for a change: the handle itself may move, by an operation or a refresh, before the change is
    committed."""
    return IcebergTable(
        iceberg.name(), iceberg.metadata, iceberg.metadata_location, iceberg.io, iceberg.catalog, iceberg.config
    )


def _keeps_columns(before: Schema, after: Schema) -> bool:
    """Whether all columns stay, with their names, and required columns stay required."""
    names, columns = index_name_by_id(after), index_by_id(after)
    return all(
        names.get(field_id) == name and (columns[field_id].required or not before.find_field(field_id).required)
        for field_id, name in index_name_by_id(before).items()
    )


def _refuse_partition_source(metadata: TableMetadata, field_id: int, name: str) -> None:
    for field in metadata.spec().fields:
        if field.source_id == field_id and not isinstance(field.transform, VoidTransform):
            raise InvalidArgumentError(
                f"column {name!r} is the source of the partition field {field.name!r} and cannot be dropped. Remove "
                f"the partition field first: update_spec().remove_field({field.name!r})."
            )


def _refuse_range_column(metadata: TableMetadata, field_id: int, refusal: str) -> None:
    """RP-2: raise InvalidArgumentError for a range column. Range partitions are defined by these columns, and a null
    lies in no range."""
    defined = range_partitions_of(metadata.properties, metadata.schema())
    if defined is not None and field_id in defined.key.field_ids:
        exists = ranges_text(defined.key, defined.bounds) or "nothing"
        raise InvalidArgumentError(
            f"{refusal}: the range partitions of the table are defined by {', '.join(defined.key.names)}. Existing "
            f"ranges: {exists}. remove_properties({RANGE_PARTITIONS!r}) removes the range partitions, so that rows "
            "of all ranges are accepted."
        )


def _dotted(path: str | tuple[str, ...]) -> str:
    return path if isinstance(path, str) else ".".join(path)
