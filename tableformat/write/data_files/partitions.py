"""Computes the partition of every row of a batch.

The transforms are PyIceberg's, except for time transforms. Spark's writers cluster rows by the same transforms in Java
(`Transforms`), because calling Python for every row would cost more than the write. Random statements in the Spark
tests compare both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as described
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, TruncateTransform, VoidTransform
from pyiceberg.types import (
    DecimalType,
    IcebergType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

from tableformat.deletes.rules import is_unpartitioned
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.keys.microseconds import whole_microseconds
from tableformat.metadata.partition_identity import partition_identity
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.layout import is_aligned
from tableformat.range_partitions.rows import partitions_of_rows
from tableformat.write.context import WriteContext
from tableformat.write.data_files.time_partitions import TimeTransform, time_partitions

PartitionValues = tuple[Any, ...]
"""Values in the order of the spec's fields, in Iceberg's internal representation."""

RangePlace = tuple[int, int]
ANY_RANGE: Final[RangePlace] = (0, 0)


@dataclass(frozen=True, slots=True)
class Place:
    """The common target of rows that may share a file."""

    partition: PartitionValues = described(compare=False)
    identity: PartitionValues
    """DA-3: the identity of the partition. -0.0 differs from 0.0, because another engine would otherwise read its rows
    as -0.0."""
    range: RangePlace
    """The range of the partition whose rows may share a file (RP-7); ANY_RANGE if all of them may."""


_CODE_LIMIT: Final = 1 << 62
_NAN: Final = float("nan")
"""A single object, so that partitions of NaN are one dictionary key: a NaN equals itself only by identity."""


@dataclass(frozen=True, slots=True)
class Route:
    """The targets of the rows of one batch."""

    partitions: tuple[PartitionValues, ...]
    codes: npt.NDArray[np.int64] | None
    """The index of the partition for each row; None if there is only one."""
    ranges: tuple[RangePlace, ...] | None = None
    """For each partition a value that differs if rows of one partition must not share a file (RP-7)."""

    @property
    def places(self) -> tuple[Place, ...]:
        ranges = self.ranges or (ANY_RANGE,) * len(self.partitions)
        return tuple(
            Place(values, partition_identity(0, values)[1], each)
            for values, each in zip(self.partitions, ranges, strict=True)
        )


class RowRouter(Protocol):
    """Computes the partition of every row."""

    @property
    def only_place(self) -> Place | None:
        """The target of all rows, if it does not depend on them; otherwise None."""

    def route(self, batch: pa.RecordBatch) -> Route: ...


class SpecRouter:
    """Routes by the transforms of a partition spec."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        self._spec = spec
        self._schema = schema
        self._only: Route | None = Route(((None,) * len(spec.fields),), None) if is_unpartitioned(spec) else None

    @property
    def only_place(self) -> Place | None:
        return None if self._only is None else self._only.places[0]

    def route(self, batch: pa.RecordBatch) -> Route:
        if self._only is not None:
            return self._only
        columns = [_transformed(field, self._schema, batch) for field in self._spec.fields]
        codes, first_rows = _combined_codes(columns)
        firsts = pa.array(first_rows)
        values = [_internal_values(column.take(firsts)) for column in columns]
        partitions = tuple(zip(*values, strict=True))
        return Route(partitions, codes if len(partitions) > 1 else None)


class RangeRouter:
    """RP-7: routes by a spec, and separates rows of different range partitions."""

    def __init__(self, by_spec: RowRouter, defined: DefinedPartitions) -> None:
        self._by_spec = by_spec
        self._defined = defined

    @property
    def only_place(self) -> None:
        return None

    def route(self, batch: pa.RecordBatch) -> Route:
        route = self._by_spec.route(batch)
        names = [batch.schema.names.index(name) for name in self._defined.key.names]
        ranges, codes = partitions_of_rows(self._defined, [batch.column(position) for position in names])
        if route.codes is not None:
            codes = codes + route.codes * len(ranges)
        pairs, codes = np.unique(codes, return_inverse=True)
        partitions, numbers = (each.tolist() for each in np.divmod(pairs, len(ranges)))
        return Route(
            tuple(route.partitions[index] for index in partitions),
            codes.astype(np.int64) if len(pairs) > 1 else None,
            tuple(ranges[index] for index in numbers),
        )


def row_router(context: WriteContext) -> RowRouter:
    """The router of a table's rows: by its default spec, and by its range partitions if files would otherwise cross
    their borders."""
    by_spec = SpecRouter(context.spec, context.schema)
    defined = context.range_partitions
    if defined is None or is_aligned(defined, context.spec):
        return by_spec
    return RangeRouter(by_spec, defined)


def split(batch: pa.RecordBatch, route: Route) -> Iterator[tuple[Place, pa.RecordBatch]]:
    """The rows of each target in input order, copied so that one target does not keep the others in memory."""
    if route.codes is None:
        yield route.places[0], batch
        return
    # Radix sort for 16 bits: one pass over the rows for any number of partitions.
    codes = route.codes.astype(np.uint16) if len(route.partitions) < 1 << 16 else route.codes
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(route.partitions)))
    begin = 0
    for place, end in zip(route.places, ends.tolist(), strict=True):
        yield place, batch.take(pa.array(order[begin:end]))
        begin = end


def transformed_values(field: PartitionField, source: IcebergType, column: pa.Array) -> list[Any]:
    """The distinct partition values of a source column, in Iceberg's internal representation."""
    return _internal_values(_partition_column(field, source, column).unique())


def _transformed(field: PartitionField, schema: Schema, batch: pa.RecordBatch) -> pa.Array:
    if isinstance(field.transform, VoidTransform):
        return pa.nulls(batch.num_rows)
    return _partition_column(field, schema.find_type(field.source_id), _source_column(batch, schema, field.source_id))


def _partition_column(field: PartitionField, source: IcebergType, column: pa.Array) -> pa.Array:
    if isinstance(field.transform, TruncateTransform) and pa.types.is_large_binary(column.type):
        return pc.binary_slice(column, 0, field.transform._width)
    try:
        return _run_transform(field, source, column)
    except NotImplementedError as error:
        raise UnsupportedFeatureError(
            f"partition field {field.name!r} uses the transform {field.transform}, which this library version cannot "
            "write."
        ) from error


def _run_transform(field: PartitionField, source: IcebergType, column: pa.Array) -> pa.Array:
    """FM-31: nanoseconds are hashed as microseconds, rounded down; PyIceberg rounds towards zero."""
    if isinstance(source, TimestampNanoType | TimestamptzNanoType) and not isinstance(
        field.transform, IdentityTransform
    ):
        column = whole_microseconds(column)
        source = TimestampType() if column.type.tz is None else TimestamptzType()
    if isinstance(field.transform, TimeTransform) and pa.types.is_temporal(column.type):
        return time_partitions(field.transform, column, field.name)
    transformed: pa.Array = field.transform.pyarrow_transform(source)(column)
    if isinstance(source, DecimalType) and isinstance(field.transform, TruncateTransform):
        _refuse_too_many_digits(field, source, transformed)
    return transformed


def _refuse_too_many_digits(field: PartitionField, source: DecimalType, transformed: pa.Array) -> None:
    """A negative value is truncated downwards, to a value that may have one digit more than its type."""
    least = pc.min(transformed).as_py()
    if least is not None and len(least.as_tuple().digits) > source.precision:
        raise InvalidArgumentError(
            f"partition field {field.name!r} has no value for a row: {field.transform} of it is {least}, which is "
            f"not a valid {source}. Nothing was changed. Remove such rows, or increase the precision of the column."
        )


def _source_column(batch: pa.RecordBatch, schema: Schema, field_id: int) -> pa.Array:
    """The column of a field, which may be inside structs."""
    path = _path(schema.as_struct(), field_id)
    column = batch.column(path[0])
    return pc.struct_field(column, path[1:]) if len(path) > 1 else column


def _path(struct: StructType, field_id: int) -> list[int]:
    for position, field in enumerate(struct.fields):
        if field.field_id == field_id:
            return [position]
        if isinstance(field.field_type, StructType):
            inner = _path(field.field_type, field_id)
            if inner:
                return [position, *inner]
    return []


def _combined_codes(columns: Sequence[pa.Array]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each row the number of its distinct combination of values, and for each combination a row that has it."""
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    size = 1
    for column in columns:
        plain = column.storage if isinstance(column, pa.ExtensionArray) else column
        encoded = plain.dictionary_encode(null_encoding="encode")
        count = max(len(encoded.dictionary), 1)
        if size * count >= _CODE_LIMIT:
            _, combined = np.unique(combined, return_inverse=True)
            size = int(combined.max(initial=0)) + 1
        combined = combined * count + np.asarray(encoded.indices, dtype=np.int64)
        size *= count
    _, first_rows, codes = np.unique(combined, return_index=True, return_inverse=True)
    return codes.astype(np.int64), first_rows.astype(np.int64)


def _internal_values(column: pa.Array) -> list[Any]:
    """Python values in Iceberg's internal representation: dates are days, times and timestamps whole units."""
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [_NAN if value is not None and value != value else value for value in values]  # noqa: PLR0124
    return values
