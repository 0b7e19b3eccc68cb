"""Checks of the rows of a Parquet file, in batches (MT-74).

Every check gets the batches of one file in order, keeps a few values, and reports the flaws at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import PrimitiveType

from tableformat.filters.file_statistics import column_statistics
from tableformat.keys.arrow_columns import plain_values
from tableformat.keys.families import arrow_type_of
from tableformat.keys.internal_values import internal_values_of
from tableformat.keys.microseconds import without_finer_digits
from tableformat.keys.rising_rows import RisingRows
from tableformat.maintenance.verification.findings import FindingKind, Flaw
from tableformat.metadata.content_file import ContentFile, DataFile, null_count, value_count
from tableformat.metadata.partition_identity import partition_of
from tableformat.parquet.projection import FileProjection
from tableformat.write.data_files.partitions import PartitionValues, SpecRouter


class RowCheck(Protocol):
    """One check of the rows of a file."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Check the next rows, in the columns and types of the file."""

    def flaws(self) -> Iterator[Flaw]:
        """The flaws, after the last batch."""


class ColumnCheck:
    """MT-74: checks that the counts in the entry are correct for the column, and that its bounds include every value.

    Bounds are interpreted like in the filters of this library, so a flaw here is a value that a filter would lose.
    """

    def __init__(self, file: ContentFile, field_id: int, name: str, column_type: PrimitiveType, path: Sequence[str]):
        self._file = file
        self._field_id = field_id
        self._name = name
        self._type = column_type
        self._path = tuple(path)
        self._statistics = column_statistics(file, field_id, column_type)
        self._row_count = 0
        self._null_count = 0
        self._nan_count = 0
        self._lowest: Any = None
        self._highest: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        column = leaf_values(batch, self._path)
        self._row_count += len(column)
        self._null_count += column.null_count
        if pa.types.is_floating(column.type):
            is_nan = pc.is_nan(column)
            nan_count = pc.sum(is_nan).as_py() or 0
            self._nan_count += nan_count
            column = pc.if_else(is_nan, pa.scalar(None, column.type), column) if nan_count else column
        if (self._statistics.lower is None and self._statistics.upper is None) or column.null_count == len(column):
            return
        extremes = pc.min_max(column)
        wanted = arrow_type_of(self._type)
        pair = without_finer_digits(pa.array([extremes["min"], extremes["max"]], column.type), wanted)
        lowest, highest = internal_values_of(pair.cast(wanted, safe=False), self._type)
        self._lowest = lowest if self._lowest is None else min(self._lowest, lowest)
        self._highest = highest if self._highest is None else max(self._highest, highest)

    def flaws(self) -> Iterator[Flaw]:
        for count, found, unit in (
            (value_count(self._file, self._field_id), self._row_count, "values"),
            (null_count(self._file, self._field_id), self._null_count, "nulls"),
            ((self._file.nan_value_counts or {}).get(self._field_id), self._nan_count, "NaNs"),
        ):
            if count is not None and count != found:
                what = f"its entry states {count:,} {unit} in column {self._name!r}, but the file has {found:,}"
                yield Flaw(FindingKind.WRONG_COUNT, self._file.file_path, what)
        lower, upper = self._statistics.lower, self._statistics.upper
        if self._lowest is not None and lower is not None and self._lowest < lower:
            yield self._outside("below the lower", lower, self._lowest)
        if self._highest is not None and upper is not None and self._highest > upper:
            yield self._outside("above the upper", upper, self._highest)

    def _outside(self, side: str, bound: Any, value: Any) -> Flaw:
        what = f"column {self._name!r} has a value, {value!r}, {side} bound {bound!r} of its entry"
        return Flaw(FindingKind.WRONG_BOUNDS, self._file.file_path, what)


class OrderCheck:
    """RD-11: checks that the rows are in the order of the sort marker: nulls first, then in the order of keys
    (RD-4)."""

    def __init__(self, file: ContentFile, paths: Sequence[Sequence[str]], names: Sequence[str]) -> None:
        self._file = file
        self._paths = [tuple(path) for path in paths]
        self._names = ", ".join(names)
        self._rows = RisingRows()

    def add(self, batch: pa.RecordBatch) -> None:
        self._rows.add([leaf_values(batch, path) for path in self._paths])

    def flaws(self) -> Iterator[Flaw]:
        if self._rows.falls_at is not None:
            what = (
                f"its footer claims that its rows are sorted by {self._names}, but the row at position "
                f"{self._rows.falls_at:,} sorts before the previous row"
            )
            yield Flaw(FindingKind.WRONG_ORDER, self._file.file_path, what)


class PartitionCheck:
    """MT-74: checks that the transforms of the file's spec give the entry's partition for every row."""

    def __init__(self, file: DataFile, spec: PartitionSpec, schema: Schema, projection: FileProjection) -> None:
        self._file = file
        self._spec = spec
        self._router = SpecRouter(spec, schema)
        self._projection = projection
        self._other: PartitionValues | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        if self._other is not None or not batch.num_rows:
            return
        rows = self._projection.apply(pa.Table.from_batches([batch]), batch.num_rows).combine_chunks()
        stated = partition_of(self._file)
        for part in rows.to_batches():
            for values in self._router.route(part).partitions:
                if partition_of(replace(self._file, partition=values)) != stated:
                    self._other = values
                    return

    def flaws(self) -> Iterator[Flaw]:
        if self._other is not None:
            names = [field.name for field in self._spec.fields]
            found = ", ".join(f"{name}={value!r}" for name, value in zip(names, self._other, strict=True))
            stated = ", ".join(f"{name}={value!r}" for name, value in zip(names, self._file.partition, strict=True))
            what = f"its entry states partition {stated}, but it has a row of {found}"
            yield Flaw(FindingKind.WRONG_PARTITION, self._file.file_path, what)


def leaf_values(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    """The column at the path, as plain values. Nulls of a parent struct are nulls."""
    column = batch.column(path[0])
    return plain_values(pc.struct_field(column, list(path[1:])) if len(path) > 1 else column)
