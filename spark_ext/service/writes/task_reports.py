"""Reports of a write's tasks: the files they wrote, the rows they delete, the prefixes they replace.

A report is the length of a header as a 32-bit big-endian integer, the header as JSON, and raw bytes behind it in this
order: the footer of each file, the positions of each file with deleted rows (a roaring bitmap), the prefixes (an
Arrow stream):

    {"files": [{"path": ..., "size": 812, "partition": [3, null], "footer": 420}],
     "positions": [{"path": ..., "bytes": 64}], "prefixes": 0}
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
import pyarrow.parquet as pq
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, DecimalType, DoubleType, FixedType, FloatType, IcebergType, UUIDType
from pyroaring import BitMap

from tableformat.deletes.positions import PositionSet
from tableformat.metadata.content_file import DataFile
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_file_entry import data_file_entry
from tableformat.write.data_files.partitions import PartitionValues
from tableformat.write.rows.conform import ConformedRows
from tableformat.write.rows.distinct import distinct_rows

_LENGTH: Final = struct.Struct(">i")
_MAGIC: Final = b"PAR1"


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One task's report, its bytes cut into pieces."""

    files: tuple[dict[str, Any], ...]
    footers: tuple[memoryview, ...]
    positions: tuple[tuple[str, memoryview], ...]
    prefixes: memoryview | None

    @classmethod
    def parse(cls, report: bytes) -> TaskReport:
        length = _LENGTH.unpack_from(report)[0]
        start = _LENGTH.size + length
        header = json.loads(report[_LENGTH.size : start])
        pieces = _Pieces(memoryview(report), start)
        footers = tuple(pieces.take(file["footer"]) for file in header["files"])
        positions = tuple((each["path"], pieces.take(each["bytes"])) for each in header["positions"])
        prefixes = pieces.take(header["prefixes"]) if header["prefixes"] else None
        return cls(tuple(header["files"]), footers, positions, prefixes)

    def data_files(self, context: WriteContext) -> Iterator[DataFile]:
        """The files as entries of the context's spec. Nobody counted their NaNs."""
        for file, footer in zip(self.files, self.footers, strict=True):
            yield data_file_entry(
                context,
                file["path"],
                pq.read_metadata(io.BytesIO(_MAGIC + footer.tobytes())),
                file["size"],
                partition=partition_values(file["partition"], context.spec, context.schema),
                nan_value_counts=None,
            )


@dataclass(slots=True)
class _Pieces:
    source: memoryview
    position: int

    def take(self, size: int) -> memoryview:
        start = self.position
        self.position += size
        return self.source[start : self.position]


def reports_of(parts: Sequence[bytes]) -> list[TaskReport]:
    return [TaskReport.parse(part) for part in parts]


def data_files_of(reports: Sequence[TaskReport], context: WriteContext) -> tuple[DataFile, ...]:
    return tuple(file for report in reports for file in report.data_files(context))


def paths_of(reports: Sequence[TaskReport]) -> list[str]:
    """The locations of all new files."""
    return [file["path"] for report in reports for file in report.files]


def deleted_positions_of(reports: Sequence[TaskReport]) -> dict[str, PositionSet]:
    """The rows to delete of each data file; several tasks can have found rows of one file."""
    bitmaps: dict[str, BitMap] = {}
    for report in reports:
        for path, serialized in report.positions:
            bitmaps.setdefault(path, BitMap()).update(BitMap.deserialize(serialized.tobytes()))
    return {
        path: PositionSet.from_array(np.asarray(bitmap.to_array(), dtype=np.int64)) for path, bitmap in bitmaps.items()
    }


def prefixes_of(reports: Sequence[TaskReport], names: Sequence[str], schema: Schema) -> pa.Table:
    """The distinct prefixes that occur in the rows, in the types of the table's schema."""
    key = Schema(*(schema.find_field(name) for name in names))
    tables = [pa.ipc.open_stream(report.prefixes).read_all() for report in reports if report.prefixes is not None]
    if not tables:
        return ConformedRows(pa.table({name: pa.nulls(0) for name in names}).to_reader(), key).to_reader().read_all()
    found = pa.concat_tables(tables).rename_columns(list(names))
    return distinct_rows(ConformedRows(found.to_reader(), key).to_reader().read_all())


def partition_values(values: Sequence[Any], spec: PartitionSpec, schema: Schema) -> PartitionValues:
    """The values that a task computed, in Iceberg's internal representation."""
    types = (field.transform.result_type(schema.find_type(field.source_id)) for field in spec.fields)
    return tuple(_partition_value(value, field_type) for value, field_type in zip(values, types, strict=True))


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
