"""Information from the footer of a file to add: whether its columns match the table, its metrics, and the partition of
all its rows (LK-10).

    null counts and bounds        partition by p
    no null, p from 5 to 5        5
    nulls alone                   null
    nulls, p from 5 to 5          several: an error
    no statistics, or a float     its rows are read
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from io import StringIO
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, _check_pyarrow_schema_compatible, pyarrow_to_schema
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, _SchemaCompatibilityVisitor, index_by_id, pre_order_visit
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import VoidTransform
from pyiceberg.typedef import TableVersion
from pyiceberg.types import (
    BinaryType,
    DateType,
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from rich.console import Console

from tableformat.errors import InvalidArgumentError
from tableformat.keys.internal_values import array_of_internal_values
from tableformat.metadata.arrow_schema import stored_types
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.partition_identity import partition_identity
from tableformat.parquet.metrics_modes import MetricsMode
from tableformat.parquet.parquet_columns import field_id_of, with_field_ids
from tableformat.parquet.parquet_metrics import Metrics, data_file_metrics
from tableformat.properties import NAME_MAPPING, name_mapping
from tableformat.storage.storage import open_input, reading
from tableformat.write.data_files.partitions import SpecRouter, transformed_values

_WHOLE: Final = MetricsMode(width=None)
_FIRST_DAY, _LAST_DAY = ((day - dt.date(1970, 1, 1)).days for day in (dt.date.min, dt.date.max))
_MICROS_IN_DAY: Final = 86_400_000_000


REFUSALS: Final = (ValueError, KeyError, NotImplementedError, OverflowError, UnsupportedPyArrowTypeException)
"""Errors for a file that does not match the table."""


class Undecided(Enum):
    """The footer does not determine the partition of the rows."""

    UNDECIDED = "the rows decide"


UNDECIDED: Final = Undecided.UNDECIDED


def _check_compatible(requested: Schema, stored: pa.Schema, format_version: TableVersion) -> None:
    """Raise ValueError if columns or types do not match the requested ones. PyIceberg's own function prints them on
    stdout."""
    try:
        provided = pyarrow_to_schema(stored, name_mapping=requested.name_mapping, format_version=format_version)
    except ValueError:
        _check_pyarrow_schema_compatible(requested, stored, format_version=format_version)  # Names the columns.
        raise
    visitor = _SchemaCompatibilityVisitor(provided)
    visitor.console = Console(file=StringIO(), record=True)
    pre_order_visit(requested, visitor)


@dataclass(frozen=True)
class AddedFile:
    """The footer of a Parquet file, and how its columns map to the columns of the table."""

    path: str
    footer: pq.FileMetaData
    columns: pa.Schema
    """The columns, with the field ids of the table."""
    has_own_ids: bool
    """Whether the file itself has field ids."""

    @staticmethod
    def read(io: FileIO, path: str, metadata: TableMetadata) -> AddedFile:
        """Read the footer. Raises ValueError and other errors of PyIceberg for a file whose columns or types do not
        match the table."""
        with reading(path), open_input(io, path) as stream:
            footer = pq.read_metadata(stream)
        stored = footer.schema.to_arrow_schema()
        current = metadata.schema()
        # Nulls in required columns are detected from the counts or the rows.
        relaxed = Schema(*(field.model_copy(update={"required": False}) for field in current.fields))
        _refuse_types(footer, stored, metadata.format_version)
        known = stored_types(stored, metadata.format_version)
        _check_compatible(relaxed, known, metadata.format_version)
        columns = with_field_ids(stored, name_mapping(metadata.properties), path)
        found = AddedFile(path, footer, columns, has_own_ids=columns is stored)
        found._check_names(metadata)
        found._check_years(current)
        return found

    @property
    def field_ids(self) -> frozenset[int]:
        """The field ids of its top-level columns."""
        return frozenset(field_id for field in self.columns if (field_id := field_id_of(field)) is not None)

    def metrics(self, schema: Schema, modes: Mapping[int, MetricsMode]) -> Metrics:
        """The metrics of the columns that the table has, in the form of its manifest entries (FM-8)."""
        return data_file_metrics(self.footer, schema, modes=modes, columns=self.columns)

    def partition(self, spec: PartitionSpec, schema: Schema) -> tuple[Any, ...]:
        """For each partition field, the value of all rows in Iceberg's internal representation, or UNDECIDED. Raises
        InvalidArgumentError for rows of several partitions."""
        whole = self.metrics(schema, {field.source_id: _WHOLE for field in spec.fields})
        return tuple(self._value_of(field, schema, whole) for field in spec.fields)

    def _value_of(self, field: PartitionField, schema: Schema, whole: Metrics) -> Any:
        source = schema.find_field(field.source_id)
        if isinstance(field.transform, VoidTransform):
            return None
        if field.source_id not in whole.column_sizes:
            return _transformed(field, schema, [source.initial_default])[0]
        nulls, rows = whole.null_value_counts.get(field.source_id), whole.value_counts.get(field.source_id)
        if nulls is not None and nulls == rows:
            return None
        if not field.transform.preserves_order:
            raise InvalidArgumentError(
                f"the partition of its rows by {field.name}, which is {field.transform}, cannot be derived from its "
                "bounds"
            )
        lower, upper = (bounds.get(field.source_id) for bounds in (whole.lower_bounds, whole.upper_bounds))
        # Bounds do not include NaN, and zero has two signs.
        is_float = isinstance(source.field_type, FloatType | DoubleType)
        if nulls is None or lower is None or upper is None or is_float:
            return UNDECIDED
        assert isinstance(source.field_type, PrimitiveType), "partition columns are primitive"
        ends = [from_bound(each, source.field_type, location=self.path) for each in (lower, upper)]
        values = [*_transformed(field, schema, ends), *([None] if nulls else [])]
        if len(values) == 1:
            return values[0]
        if isinstance(source.field_type, StringType | BinaryType) and not nulls:
            return UNDECIDED  # Writers may have truncated the bounds.
        raise _several(field, values)

    def _check_names(self, metadata: TableMetadata) -> None:
        """LK-19: raise InvalidArgumentError for columns that readers of the table would not find. Readers use field ids
        or the name mapping, not the current names. The file's own ids may belong to a column that was renamed in the
        meantime."""
        schemas = metadata.schemas if self.has_own_ids else [metadata.schema()]
        names = min((list(_misnamed(self.columns, schema.fields)) for schema in schemas), key=len)
        if names:
            why = (
                "their field ids belong to other columns"
                if self.has_own_ids
                else f"in files without field ids these names belong to other or dropped columns ({NAME_MAPPING})"
            )
            raise InvalidArgumentError(f"it has the columns {', '.join(map(repr, names))}, but {why}")

    def _check_years(self, schema: Schema) -> None:
        """Raise InvalidArgumentError for days before the year 1 or after 9999, which Python cannot represent."""
        whole = self.metrics(schema, {})
        for field_id, field in index_by_id(schema).items():
            unit = _days_of(field)
            for bounds in (whole.lower_bounds, whole.upper_bounds):
                if unit and field_id in bounds and isinstance(field.field_type, PrimitiveType):
                    value = from_bound(bounds[field_id], field.field_type, location=self.path)
                    if not _FIRST_DAY <= value // unit <= _LAST_DAY:
                        raise InvalidArgumentError(f"column {field.name!r} has a value outside the years 1 to 9999")


def _refuse_types(footer: pq.FileMetaData, columns: pa.Schema, format_version: int) -> None:
    """LK-10: raise InvalidArgumentError for all columns whose values other readers of the table would not find
    unchanged: types that Iceberg does not store in Parquet."""
    refused: dict[str, str] = {}
    for field in columns:
        refused |= {path: str(kind) for path, kind in _leaf_types(field.name, field.type, format_version)}
    leaves = [footer.schema.column(index) for index in range(footer.num_columns)]
    refused |= {leaf.path: "INT96" for leaf in leaves if leaf.physical_type == "INT96"}
    if refused:
        told = ", ".join(f"{path!r} as {kind}" for path, kind in refused.items())
        raise InvalidArgumentError(f"it stores {told}, which Iceberg does not support in data files")


def _leaf_types(path: str, kind: pa.DataType, format_version: int) -> Iterator[tuple[str, pa.DataType]]:
    """The leaf columns of a type that Iceberg does not store, by their paths."""
    if pa.types.is_dictionary(kind):
        yield from _leaf_types(path, kind.value_type, format_version)
    for index in range(kind.num_fields):
        child = kind.field(index)
        yield from _leaf_types(f"{path}.{child.name}", child.type, format_version)
    is_nanoseconds = pa.types.is_timestamp(kind) and kind.unit == "ns" and format_version < 3
    is_time = pa.types.is_time(kind) and kind != pa.time64("us")
    if is_nanoseconds or is_time or kind in (pa.bool8(), pa.float16(), pa.uint32(), pa.uint64()):
        yield path, kind


def partition_of_rows(
    fields: Sequence[PartitionField], schema: Schema, batches: Iterable[pa.RecordBatch]
) -> tuple[Any, ...]:
    """The partition of rows in the table's schema, by some fields; reads all batches. Raises InvalidArgumentError for
    several partitions."""
    router = SpecRouter(PartitionSpec(*fields), schema)
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for batch in batches:
        if batch.num_rows:
            found |= {partition_identity(0, values)[1]: values for values in router.route(batch).partitions}
    for field, values in zip(fields, zip(*found.values(), strict=True), strict=False):
        if len(set(map(repr, values))) > 1:
            raise _several(field, values)
    return next(iter(found.values()), (None,) * len(fields))


def _several(field: PartitionField, values: Sequence[Any]) -> InvalidArgumentError:
    """The error for rows of several partitions; a data file has one partition."""
    told = ", ".join(map(repr, values[:3]))
    return InvalidArgumentError(f"its rows have more than one partition value of {field.name}: {told}")


def _misnamed(columns: Iterable[pa.Field], known: Iterable[NestedField]) -> Iterator[str]:
    """Names of columns whose ids differ from the ids of the table's columns with these names."""
    by_name = {field.name: field for field in known}
    for column in columns:
        field = by_name.get(column.name)
        if field is None or field_id_of(column) != field.field_id:
            yield column.name
        else:
            yield from (f"{field.name}.{name}" for name in _misnamed(*_inside(column.type, field.field_type)))


def _inside(column_type: pa.DataType, field_type: IcebergType) -> tuple[list[pa.Field], tuple[NestedField, ...]]:
    """The parts of a type in the file and in the table."""
    match field_type:
        case StructType():
            return list(column_type), field_type.fields
        case ListType():
            return [column_type.value_field.with_name("element")], (field_type.element_field,)
        case MapType():
            key, value = column_type.key_field.with_name("key"), column_type.item_field.with_name("value")
            return [key, value], (field_type.key_field, field_type.value_field)
    return [], ()


def _transformed(field: PartitionField, schema: Schema, values: Sequence[Any]) -> list[Any]:
    """The distinct partition values of values in the internal representation."""
    source = schema.find_type(field.source_id)
    assert isinstance(source, PrimitiveType), "partition columns are primitive"
    found = transformed_values(field, source, array_of_internal_values(values, source))
    return [UUID(bytes=value) if isinstance(source, UUIDType) and value is not None else value for value in found]


def _days_of(field: NestedField) -> int:
    """The length of a day in the unit of the values; 0 for a type that is not a date or time."""
    if isinstance(field.field_type, DateType):
        return 1
    return _MICROS_IN_DAY if isinstance(field.field_type, TimestampType | TimestamptzType) else 0
