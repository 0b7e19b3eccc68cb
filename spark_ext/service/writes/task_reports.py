"""Reports of a write's tasks: the files they wrote, the rows they delete, the prefixes they replace.

A report starts with the length of its header, as a 32-bit big-endian integer, and the header as JSON. Raw bytes follow
in this order: the footer of each file, the positions of each file with deleted rows (a roaring bitmap), and the
messages (an Arrow stream). If rows were rejected, the values of range columns in some of them (an Arrow stream) and the
footer of the file with diverted rows follow:

    {"files": [{"path": ..., "size": 812, "partition": [3, null], "footer": 420,
                "floats": [{"id": 4, "nans": 2, "lowest": "-1.5", "highest": "Infinity"}]}],
     "positions": [{"path": ..., "bytes": 64}], "prefixes": 0,
     "duplicates": {"rows": 1, "key": "an Arrow stream in Base64"},
     "refused": {"rows": 10, "refused": 3, "samples": 220,
                 "file": {"path": ..., "size": 812, "footer": 420, "floats": []}}}

Floating point columns have bounds here if they have both NaNs and other values. The bounds in the footer are then not
usable.
"""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, DecimalType, DoubleType, FixedType, FloatType, IcebergType, UUIDType
from pyroaring import BitMap

from tableformat.deletes.positions import PositionSet
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.content_file import DataFile
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_file_entry import data_file_entry
from tableformat.write.data_files.partitions import PartitionValues
from tableformat.write.rows.conform import ConformedRows
from tableformat.write.rows.distinct import distinct_rows
from tableformat.write.rows.unique_keys import duplicate_keys_error
from tableformat.write.staged import StagedMessages

_LENGTH: Final = struct.Struct(">i")
_MAGIC: Final = b"PAR1"


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The parsed report of one task."""

    files: tuple[dict[str, Any], ...]
    footers: tuple[memoryview, ...]
    positions: tuple[tuple[str, memoryview], ...]
    prefixes: memoryview | None
    """The messages of a replacement: prefix, order columns and the number of a file, which is negative for none."""
    duplicates: tuple[int, memoryview] | None
    """CP-67: the number of rows of the task with the same key as the previous row, and the first such key. None if
    messages are ordered: the task then reports a message again for each such row, and the commit compares (CP-68)."""
    refused: RefusedReport | None

    @classmethod
    def parse(cls, report: bytes) -> TaskReport:
        length = _LENGTH.unpack_from(report)[0]
        start = _LENGTH.size + length
        header = json.loads(report[_LENGTH.size : start])
        pieces = _Pieces(memoryview(report), start)
        footers = tuple(pieces.take(file["footer"]) for file in header["files"])
        positions = tuple((each["path"], pieces.take(each["bytes"])) for each in header["positions"])
        prefixes = pieces.take_aligned(header["prefixes"]) if header["prefixes"] else None
        refused = _refused(header["refused"], pieces) if "refused" in header else None
        return cls(tuple(header["files"]), footers, positions, prefixes, _duplicates(header), refused)

    @property
    def written_row_count(self) -> int:
        """The number of rows in the new files."""
        return sum(_metadata(footer).num_rows for footer in self.footers)

    def data_files(self, context: WriteContext) -> Iterator[DataFile]:
        """The new files as entries with the context's spec."""
        for file, footer in zip(self.files, self.footers, strict=True):
            values = partition_values(file["partition"], context.spec, context.schema)
            yield _entry(file, footer, context, values)


@dataclass(frozen=True, slots=True)
class RefusedReport:
    """The rows of one task that are outside of existing ranges."""

    row_count: int
    """The number of rows of the task, rejected or not."""
    refused_count: int
    samples: memoryview
    file: dict[str, Any] | None
    """The file with the diverted rows."""
    footer: memoryview | None

    def data_file(self, context: WriteContext) -> DataFile | None:
        """The file of diverted rows, for reading only: it has no partition and never becomes part of a table."""
        if self.file is None or self.footer is None:
            return None
        return _entry(self.file, self.footer, context, (None,) * len(context.spec.fields))


def _duplicates(header: dict[str, Any]) -> tuple[int, memoryview] | None:
    found = header.get("duplicates")
    return None if found is None else (found["rows"], memoryview(base64.b64decode(found["key"])))


def _refused(header: dict[str, Any], pieces: _Pieces) -> RefusedReport:
    samples, file = pieces.take_aligned(header["samples"]), header.get("file")
    footer = None if file is None else pieces.take(file["footer"])
    return RefusedReport(header["rows"], header["refused"], samples, file, footer)


def _entry(file: dict[str, Any], footer: memoryview, context: WriteContext, partition: PartitionValues) -> DataFile:
    return data_file_entry(
        context,
        file["path"],
        _metadata(footer),
        file["size"],
        partition=partition,
        nan_value_counts={each["id"]: each["nans"] for each in file["floats"]},
        bounds_beside_nan={
            each["id"]: (float(each["lowest"]), float(each["highest"])) for each in file["floats"] if "lowest" in each
        },
    )


def _metadata(footer: memoryview) -> pq.FileMetaData:
    return pq.read_metadata(io.BytesIO(_MAGIC + footer.tobytes()))


@dataclass(slots=True)
class _Pieces:
    source: memoryview
    position: int

    def take(self, size: int) -> memoryview:
        start = self.position
        self.position += size
        return self.source[start : self.position]

    def take_aligned(self, size: int) -> memoryview:
        """A copy of the piece at its own address: Arrow requires addresses that are multiples of eight."""
        return memoryview(self.take(size).tobytes())


def reports_of(parts: Sequence[bytes]) -> list[TaskReport]:
    return [TaskReport.parse(part) for part in parts]


def data_files_of(reports: Sequence[TaskReport], context: WriteContext) -> tuple[DataFile, ...]:
    return tuple(file for report in reports for file in report.data_files(context))


def paths_of(reports: Sequence[TaskReport]) -> list[str]:
    """The locations of all new files."""
    return [*(file["path"] for report in reports for file in report.files), *diverted_paths_of(reports)]


def diverted_paths_of(reports: Sequence[TaskReport]) -> list[str]:
    """The locations of files with diverted rows."""
    refused = [report.refused for report in reports if report.refused is not None]
    return [each.file["path"] for each in refused if each.file is not None]


def deleted_positions_of(reports: Sequence[TaskReport]) -> dict[str, PositionSet]:
    """The positions to delete in each data file. Several tasks may report rows of one file."""
    bitmaps: dict[str, BitMap] = {}
    for report in reports:
        for path, serialized in report.positions:
            bitmaps.setdefault(path, BitMap()).update(BitMap.deserialize(serialized.tobytes()))
    return {
        path: PositionSet.from_array(np.asarray(bitmap.to_array(), dtype=np.int64)) for path, bitmap in bitmaps.items()
    }


def prefixes_of(reports: Sequence[TaskReport], names: Sequence[str], schema: Schema) -> pa.Table:
    """The distinct prefixes in the rows, in the types of the table's schema."""
    found = [message.prefixes for message in messages_of(reports, names, schema)]
    return (
        distinct_rows(pa.concat_tables(found))
        if found
        else typed_values(pa.table({name: pa.nulls(0) for name in names}), schema)
    )


def messages_of(reports: Sequence[TaskReport], names: Sequence[str], schema: Schema) -> list[StagedMessages]:
    """CP-68: the messages whose rows are in each file, and messages without rows."""
    found = []
    for report in reports:
        if report.prefixes is None:
            continue
        messages = _of_keys(pa.ipc.open_stream(report.prefixes).read_all())
        numbers = np.asarray(messages.column(messages.num_columns - 1))
        for number in np.unique(numbers):
            own = messages.filter(pa.array(numbers == number))
            found.append(
                StagedMessages(
                    file_paths=(report.files[number]["path"],) if number >= 0 else (),
                    prefixes=typed_values(
                        own.select(own.column_names[: len(names)]).rename_columns(list(names)), schema
                    ),
                    orders=_orders(own, len(names)),
                )
            )
    return found


def truncates_of(reports: Sequence[TaskReport], names: Sequence[str]) -> pa.Table | None:
    """SP-108: the order column values of events that truncate the table. These have no key. None if no such event
    exists."""
    found = []
    for report in reports:
        if report.prefixes is not None:
            messages = pa.ipc.open_stream(report.prefixes).read_all()
            found.append(_orders(messages.filter(pc.is_null(messages.column(0))), len(names)))
    orders = [each for each in found if each is not None and each.num_rows]
    return pa.concat_tables(orders) if orders else None


def _of_keys(messages: pa.Table) -> pa.Table:
    return messages.filter(pc.is_valid(messages.column(0))) if messages.column(0).null_count else messages


def _orders(messages: pa.Table, prefix_count: int) -> pa.Table | None:
    """The values of the order columns, which are between the prefix and the number of the file; None without order
    columns."""
    orders = messages.select(messages.column_names[prefix_count:-1])
    return orders.rename_columns(list(map(str, range(orders.num_columns)))) if orders.num_columns else None


def refuse_duplicates(reports: Sequence[TaskReport], key: Sequence[str], schema: Schema, *, table: str) -> None:
    """CP-67: raise DuplicateKeyError if a task had two rows with the same key."""
    found = [report.duplicates for report in reports if report.duplicates is not None]
    if found:
        first = _values([found[0][1]], key, schema).to_pylist()[0]
        count = sum(rows for rows, _ in found)
        raise duplicate_keys_error(count, key, first, table=table)


def refused_samples_of(reports: Sequence[TaskReport], names: Sequence[str], schema: Schema) -> pa.Table:
    """The values of range columns in some of the rejected rows, in the types of the table's schema."""
    return _values([report.refused.samples for report in reports if report.refused is not None], names, schema)


def _values(streams: Sequence[memoryview], names: Sequence[str], schema: Schema) -> pa.Table:
    tables = [pa.ipc.open_stream(stream).read_all() for stream in streams]
    if not tables:
        return typed_values(pa.table({name: pa.nulls(0) for name in names}), schema)
    return typed_values(pa.concat_tables(tables).rename_columns(list(names)), schema)


def typed_values(values: pa.Table, schema: Schema) -> pa.Table:
    """The values, converted to the types of the table's schema."""
    columns = Schema(*(schema.find_field(name) for name in values.column_names))
    return ConformedRows(values.to_reader(), columns).to_reader().read_all()


def partition_values(values: Sequence[Any], spec: PartitionSpec, schema: Schema) -> PartitionValues:
    """The partition values from a task, in Iceberg's internal representation."""
    for value, field in zip(values, spec.fields, strict=True):
        if isinstance(value, list):
            column = schema.find_column_name(field.source_id)
            raise _no_text_error(base64.b64decode(value[0]), column, field.name)
    types = (field.transform.result_type(schema.find_type(field.source_id)) for field in spec.fields)
    return tuple(_partition_value(value, field_type) for value, field_type in zip(values, types, strict=True))


def _no_text_error(value: bytes, column: str | None, field: str) -> InvalidArgumentError:
    """SP-96: the error for partition text that is not UTF-8."""
    return InvalidArgumentError(
        f"column {column!r}: a row has the bytes {value!r}, which are not UTF-8, and the table is partitioned by it "
        f"({field}): text partitions are distinguished by characters. Nothing was written. Decode the column, or "
        "store it as BINARY."
    )


def _partition_value(value: Any, field_type: IcebergType) -> Any:
    if value is None:
        return None
    match field_type:
        case BinaryType() | FixedType():
            return base64.b64decode(value)
        case DecimalType():
            return Decimal(value)
        case FloatType() | DoubleType():
            return float(value)
        case UUIDType():
            return UUID(value)
    return value
