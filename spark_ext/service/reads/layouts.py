"""How columns are found in each data file, and whether Parquet row-group filters may be used on it.

Spark's Parquet reader finds columns by field id, but it determines their type, and applies row-group filters, by name.
In a file from before a rename, the name may belong to a different column. Spark would read it as the wrong type, and a
filter would skip matching rows. Such files are read by their own names, and without row-group filters if a filtered
column is affected. Imported files without field ids are read by the names in the table's name mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pat
from pyiceberg.schema import Schema, index_by_name, make_compatible_name
from pyiceberg.types import DoubleType, FloatType, IcebergType, ListType, MapType, NestedField, StructType

from spark_ext.service.wire.expressions import columns_of
from tableformat.errors import UnsupportedFeatureError
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.parquet.parquet_columns import field_id_of
from tableformat.parquet.projection import identity_constants


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to read a file."""

    filters: bool
    """Whether row-group filters by name (SP-2) refer to the same columns."""
    names: tuple[tuple[int, str], ...] | None = None
    """The name of each field in the file, if names differ or the file has no field ids."""
    may_hold_nan: bool = False
    """Whether a filtered column may have NaNs, which statistics of row groups ignore."""
    lacking: tuple[str, ...] = ()
    """Columns that the file lacks because its partition has their value, as in directories of Hive tables."""

    def to_json(self) -> dict[str, Any]:
        described: dict[str, Any] = {"filters": self.filters}
        if self.may_hold_nan:
            described["nan"] = True
        if self.names is not None:
            described["names"] = {str(field_id): name for field_id, name in self.names}
        if self.lacking:
            described["constants"] = list(self.lacking)
        return described


class Layouts:
    """SP-1: the layouts that the files of one scan need."""

    def __init__(
        self,
        view: SnapshotView,
        context: MergeContext,
        columns: Sequence[str],
        predicates: Sequence[Mapping[str, Any]],
    ) -> None:
        self._view = view
        self._context = context
        self._columns = [field for field in view.schema.fields if field.name in columns]
        self._filtered = {tuple(column) for predicate in predicates for column in columns_of(predicate)}
        self._schema = view.schema
        self._filtered_floats = _floats_among(self._filtered, view.schema)
        # Footers are read only if the metadata is inconclusive: each costs a request for the file, once.
        self._read = dict(_fields(self._columns))
        self._nested_defaults = list(_nested_defaults(self._columns))
        schemas = view.metadata.schemas
        self._must_look = (
            context.name_mapping is not None
            or bool(self._nested_defaults)
            or not names_never_moved(schemas, view.schema, self._filtered | self._read.keys())
            or not names_stayed(schemas, self._read)
        )
        self._layouts: dict[Layout, int] = {Layout(filters=True): 0}

    def index_of(self, file: DataFile) -> int:
        layout = self._layout_of(file) if self._must_look else Layout(filters=True)
        if self._filtered_floats and layout.filters and self._may_hold_nan(file):
            layout = replace(layout, may_hold_nan=True)
        return self._layouts.setdefault(layout, len(self._layouts))

    def is_read_by_id(self, file: DataFile) -> bool:
        """Whether all columns are found in the file by field id, under their current names, or are missing."""
        if not self._must_look:
            return True
        layout = self._layout_of(file)
        return layout.names is None and not layout.lacking

    def _may_hold_nan(self, file: DataFile) -> bool:
        counts = file.nan_value_counts or {}
        return any(counts.get(field_id) != 0 for field_id in self._filtered_floats)

    def lacking_columns(self) -> list[str]:
        """Columns that some file lacks."""
        return sorted({name for layout in self._layouts for name in layout.lacking})

    def to_json(self) -> list[dict[str, Any]]:
        verifies = self._context.verify_checksums
        return [layout.to_json() | ({"checksums": True} if verifies else {}) for layout in self._layouts]

    def _layout_of(self, file: DataFile) -> Layout:
        with self._context.open_data_file(file) as opened:
            self._require_nested_defaults(file, opened.schema)
            stored = opened.metadata.schema.to_arrow_schema()
            if not any(_has_id(each) for each in stored):
                names = dict(_names(opened.schema))
                fixed = identity_constants(file, self._view.spec(file.spec_id))
                lacking = [each.name for each in self._columns if each.field_id in fixed.keys() - names.keys()]
                return Layout(filters=False, names=tuple(sorted(names.items())), lacking=tuple(lacking))
            filters = self._names_agree(opened.schema)
            if self._is_read_by_current_names(opened.schema):
                return Layout(filters=filters)
            return Layout(filters=filters, names=tuple(sorted(_names(opened.schema))))

    def _require_nested_defaults(self, file: DataFile, stored: pa.Schema) -> None:
        """SP-97: raise UnsupportedFeatureError if a struct of the file lacks a field with a default: Spark's reader
        would return null."""
        ids = {field_id for _, field_id in _paths(stored)}
        for path in self._nested_defaults:
            if self._read[path] not in ids and self._read[path[:-1]] in ids:
                raise UnsupportedFeatureError(
                    f"{'.'.join(path)!r} has a default value, and {file.file_path} was written before the field was "
                    "added. Spark's Parquet reader would return null instead of the default. Rewrite the file with "
                    f"Table.maintenance.compact, or remove the column {path[0]!r} from the query."
                )

    def _is_read_by_current_names(self, stored: pa.Schema) -> bool:
        """SP-1: whether the file has every field that is read under its current name. A file may also lack both the
        field and the name."""
        by_path = dict(_paths(stored))
        paths_by_id = {field_id: path for path, field_id in by_path.items()}
        return all(
            paths_by_id.get(field_id, path) == path and by_path.get(path, field_id) == field_id
            for path, field_id in self._read.items()
        )

    def _names_agree(self, stored: pa.Schema) -> bool:
        """SP-1, SP-2: whether the columns of the file that have the name of a filtered column, in any case, have its
        id."""
        by_path = dict(_paths(stored))
        for column in self._filtered:
            wanted = self._schema.find_field(".".join(column)).field_id if _has(self._schema, column) else None
            if any(field_id != wanted for path, field_id in by_path.items() if _same(path, column)):
                return False
        return True


def names_never_moved(schemas: Sequence[Schema], current: Schema, columns: set[tuple[str, ...]]) -> bool:
    """Whether the metadata proves that a column of this name in any file is the current schema's field of that name.

    False if a schema was dropped from the history, or if another field ever had the name. Names are compared without
    case, and also in the spelling of writers that do not allow special characters.
    """
    if sorted(schema.schema_id for schema in schemas) != list(range(len(schemas))):
        return False
    wanted = {".".join(column).casefold(): column for column in columns}
    for schema in schemas:
        for name, field_id in index_by_name(schema).items():
            for spelling in {name.casefold(), _compatible(name).casefold()} & wanted.keys():
                if (
                    not _has(current, wanted[spelling])
                    or current.find_field(".".join(wanted[spelling])).field_id != field_id
                ):
                    return False
    return True


def names_stayed(schemas: Sequence[Schema], fields: Mapping[tuple[str, ...], int]) -> bool:
    """Whether the fields have had their current names in every schema, in a spelling that all writers keep."""
    paths = {field_id: path for path, field_id in fields.items()}
    return all(_compatible(part) == part for path in fields for part in path) and all(
        paths.get(field_id, path) == path for schema in schemas for path, field_id in _fields(schema.fields)
    )


def _floats_among(columns: set[tuple[str, ...]], schema: Schema) -> list[int]:
    """The ids of the floating point columns among these."""
    fields = (schema.find_field(".".join(column)) for column in columns if _has(schema, column))
    return [field.field_id for field in fields if isinstance(field.field_type, FloatType | DoubleType)]


def _compatible(name: str) -> str:
    return ".".join(make_compatible_name(part) for part in name.split("."))


def _has(schema: Schema, column: tuple[str, ...]) -> bool:
    return ".".join(column) in index_by_name(schema)


def _same(path: tuple[str, ...], column: tuple[str, ...]) -> bool:
    return ".".join(path).casefold() == ".".join(column).casefold()


def _fields(fields: Sequence[NestedField]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Path and id of every field, at every level."""
    for field in fields:
        yield (field.name,), field.field_id
        for path, field_id in _fields(_fields_inside(field.field_type)):
            yield (field.name, *path), field_id


def _nested_defaults(fields: Sequence[NestedField]) -> Iterator[tuple[str, ...]]:
    """Paths of the fields below the top level that have an initial default."""
    for field in fields:
        inside = _fields_inside(field.field_type)
        yield from ((field.name, each.name) for each in inside if each.initial_default is not None)
        yield from ((field.name, *path) for path in _nested_defaults(inside))


def _fields_inside(field_type: IcebergType) -> Sequence[NestedField]:
    match field_type:
        case StructType(fields=fields):
            return fields
        case ListType(element_field=element):
            return (element,)
        case MapType(key_field=key, value_field=value):
            return (key, value)
    return ()


def _has_id(each: pa.Field) -> bool:
    return field_id_of(each) is not None or any(_has_id(child) for child in _children(each.type))


def _paths(schema: pa.Schema) -> Iterator[tuple[tuple[str, ...], int | None]]:
    def walk(
        named: Iterable[tuple[str, pa.Field]], above: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, ...], int | None]]:
        for name, each in named:
            path = (*above, name)
            yield path, field_id_of(each)
            yield from walk(_named_children(each.type), path)

    yield from walk(((each.name, each) for each in schema), ())


def _names(schema: pa.Schema) -> Iterator[tuple[int, str]]:
    """Field id and name of every field that has an id, at every level."""

    def walk(fields: Sequence[pa.Field]) -> Iterator[tuple[int, str]]:
        for each in fields:
            field_id = field_id_of(each)
            if field_id is not None:
                yield field_id, each.name
            yield from walk(_children(each.type))

    yield from walk(list(schema))


def _children(arrow: pa.DataType) -> list[pa.Field]:
    if pat.is_struct(arrow):
        return list(arrow)
    if pat.is_map(arrow):
        return [arrow.key_field, arrow.item_field]
    return [arrow.value_field] if pat.is_list(arrow) or pat.is_large_list(arrow) else []


def _named_children(arrow: pa.DataType) -> Iterator[tuple[str, pa.Field]]:
    """Fields of a struct by name. The fields of lists and maps have Iceberg's names, independent of the writer."""
    children = _children(arrow)
    if pat.is_struct(arrow):
        return zip([each.name for each in children], children, strict=True)
    return zip(("key", "value") if pat.is_map(arrow) else ("element",), children, strict=False)
