"""Projects the columns of one data file to the columns of a scan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, prune_columns
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StructType

from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.filters.bound_filter import BoundFilter, FilterColumns, comparisons
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.content_file import DataFile
from tableformat.parquet.column_conversion import SAME, Conversion, MissingValues, conversion, repeated
from tableformat.parquet.parquet_columns import field_id_of


def select_columns(schema: Schema, columns: Sequence[str] | None) -> Schema:
    """The schema of the named columns in the given order; all columns if None.

    A dotted name selects fields of a struct. Raises UnknownColumnError with the nearest column, and
    InvalidArgumentError for a column that is named twice.
    """
    if columns is None:
        return schema
    if isinstance(columns, str):
        raise InvalidArgumentError(f"columns must be a list of names, not the text {columns!r}.")
    order: dict[str, None] = {}
    selected: set[int] = set()
    names = FilterColumns(schema).names
    for name in columns:
        if name not in names:
            raise UnknownColumnError(name, names, where="columns")
        field_id = schema.find_field(name).field_id
        if field_id in selected:
            raise InvalidArgumentError(f"columns contains {name!r} twice.")
        selected.add(field_id)
        top_level = next(
            field.name for field in schema.fields if name == field.name or name.startswith(f"{field.name}.")
        )
        order[top_level] = None
    pruned = prune_columns(schema, selected, select_full_types=True)
    by_name = {field.name: field for field in pruned.fields}
    return Schema(*(by_name[name] for name in order), schema_id=schema.schema_id)


def with_filter_columns(selected: Schema, schema: Schema, bound: BoundFilter) -> Schema:
    """The selected columns, followed by the complete columns of `schema` that the filter needs in addition."""
    needed = list(dict.fromkeys(leaf.path[0] for leaf in comparisons(bound)))
    fields = list(selected.fields)
    for name in needed:
        whole = schema.find_field(name)
        present = next((index for index, field in enumerate(fields) if field.name == name), None)
        if present is None:
            fields.append(whole)
        elif fields[present] != whole:
            # Only some fields of the struct were selected, and the filter needs others; `narrowed` removes them again.
            fields[present] = whole
    return selected if fields == list(selected.fields) else Schema(*fields, schema_id=schema.schema_id)


def identity_constants(data_file: DataFile, spec: PartitionSpec) -> dict[int, Any]:
    """The values of source columns that the partition determines, by field id."""
    return {
        field.source_id: data_file.partition[index]
        for index, field in enumerate(spec.fields)
        if isinstance(field.transform, IdentityTransform)
    }


@dataclass(frozen=True, slots=True)
class _Column:
    """The source of one column of the scan."""

    name: str | None
    """Name in the file; None if the file lacks the column."""
    convert: Conversion | None
    constant: pa.Scalar | None


@dataclass(frozen=True, slots=True)
class FileProjection:
    """Converts the row groups of one file to tables in a scan's schema."""

    leaf_indices: tuple[int, ...]
    """Parquet columns to read."""
    schema: pa.Schema
    """Arrow schema of the result."""
    takes_constants: bool
    """Whether values of partition columns may be part of the result. They are not if the file has every column and
    nothing is converted."""
    _columns: tuple[_Column, ...]

    @staticmethod
    def of(
        file_schema: pa.Schema,
        wanted: Schema,
        location: str,
        constants: Mapping[int, Any],
        *,
        result: pa.Schema | None = None,
    ) -> FileProjection:
        """`file_schema` has field ids. `constants` are the partition's values by field id. `result` is the Arrow form
        of `wanted`, if the caller has it.

        Raises CorruptFileError if the file's columns cannot be those of the table.
        """
        result = arrow_schema(wanted) if result is None else result
        missing = MissingValues(location, constants)
        by_id = {field_id_of(field): field for field in file_schema}
        columns: list[_Column] = []
        sources: dict[str, NestedField] = {}
        for field, arrow_field in zip(wanted.fields, result, strict=True):
            source = by_id.get(field.field_id)
            if source is None:
                columns.append(_Column(None, SAME, missing.scalar(field, arrow_field.type)))
                continue
            sources[source.name] = field
            pruned = _pruned(source, field)
            columns.append(_Column(source.name, conversion(pruned, field, arrow_field.type, missing), None))
        takes_constants = any(column.name is None or column.convert is not SAME for column in columns)
        return FileProjection(tuple(_leaf_indices(file_schema, sources)), result, takes_constants, tuple(columns))

    @property
    def stored_names(self) -> list[str]:
        """Names in the file of the top-level columns that `apply` needs."""
        return [column.name for column in self._columns if column.name is not None]

    def apply(self, rows: pa.Table, row_count: int) -> pa.Table:
        """The rows in the scan's schema. `row_count` is needed because a table without columns loses its number of
        rows."""
        arrays: list[pa.ChunkedArray | pa.Array] = []
        for column, field in zip(self._columns, self.schema, strict=True):
            if column.name is None:
                assert column.constant is not None
                arrays.append(repeated(column.constant, row_count))
            elif column.convert is None:
                arrays.append(rows.column(column.name))
            else:
                chunks = [column.convert(chunk) for chunk in rows.column(column.name).chunks]
                arrays.append(pa.chunked_array(chunks, type=field.type))
        if not arrays:
            return pa.table({"": pa.nulls(row_count)}).select([])
        return pa.Table.from_arrays(arrays, schema=self.schema)


def narrowed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Only the columns, and the fields of their structs, that `schema` has."""
    if rows.schema.equals(schema):
        return rows
    if all(rows.schema.field(field.name).type == field.type for field in schema):
        return rows.select(schema.names)
    arrays = []
    for field in schema:
        column = rows.column(field.name)
        if column.type != field.type:
            chunks = [_narrowed_array(chunk, field.type) for chunk in column.chunks]
            column = pa.chunked_array(chunks, type=field.type)
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=schema)


def _narrowed_array(array: pa.StructArray, wanted: pa.StructType) -> pa.Array:
    children = [
        array.field(field.name)
        if array.type.field(field.name).type == field.type
        else _narrowed_array(array.field(field.name), field.type)
        for field in wanted
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)


def _pruned(source: pa.Field, target: NestedField) -> pa.Field:
    """The file's field with only the struct fields that will be read."""
    if not isinstance(target.field_type, StructType) or not pat.is_struct(source.type):
        return source
    wanted = {field.field_id: field for field in target.field_type.fields}
    kept = [_pruned(child, wanted[child_id]) for child in source.type if (child_id := field_id_of(child)) in wanted]
    return source.with_type(pa.struct(kept)) if kept else source


def _leaf_indices(file_schema: pa.Schema, sources: Mapping[str, NestedField]) -> Iterator[int]:
    """Numbers of the Parquet columns under the wanted fields."""
    index = 0
    for field in file_schema:
        target = sources.get(field.name)
        for is_wanted in _leaves(field, target):
            if is_wanted:
                yield index
            index += 1


def _leaves(field: pa.Field, target: NestedField | None) -> Iterator[bool]:
    """For each Parquet column under the field whether it is read."""
    storage = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    if pat.is_struct(storage):
        wanted = (
            {child.field_id: child for child in target.field_type.fields}
            if target is not None and isinstance(target.field_type, StructType)
            else {}
        )
        # One field of a struct has to be read to find the null structs.
        has_any = any(field_id_of(child) in wanted for child in storage)
        for child in storage:
            child_target = wanted.get(field_id_of(child) or -1) if has_any else target
            yield from _leaves(child, child_target)
    elif storage.num_fields:
        for index in range(storage.num_fields):
            yield from _leaves_below(storage.field(index), is_wanted=target is not None)
    else:
        yield target is not None


def _leaves_below(field: pa.Field, *, is_wanted: bool) -> Iterator[bool]:
    """All Parquet columns inside a list or map are read, or none."""
    storage = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    if not storage.num_fields:
        yield is_wanted
    for index in range(storage.num_fields):
        yield from _leaves_below(storage.field(index), is_wanted=is_wanted)
