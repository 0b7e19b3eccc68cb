"""Data files in the form that `ScanFiles` of the Java side reads. Used by scans and by change feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from spark_ext.service.reads.key_deletes import KeyDeletes
from spark_ext.service.reads.layouts import Layouts
from spark_ext.service.registry import Answer, Buffer
from spark_ext.service.wire.arrow_stream import arrow_stream, spark_schema_of_arrow
from spark_ext.service.wire.position_bytes import position_bytes
from spark_ext.service.wire.s3_options import s3_options
from tableformat.deletes.positions import PositionSet
from tableformat.errors import UnsupportedFeatureError
from tableformat.merge_on_read.delete_columns import value_where_missing
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.content_file import PARQUET, DataFile
from tableformat.metadata.partition_column import partition_column
from tableformat.metadata.row_lineage import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.storage.storage import actual_location

SPEC_ID: Final = "_spec_id"
PARTITION: Final = "_partition"


class FileList:
    """The files of one scan, in the order in which they are added."""

    def __init__(
        self,
        view: SnapshotView,
        context: MergeContext,
        columns: Sequence[str],
        predicates: Sequence[Mapping[str, Any]],
        key_deletes: KeyDeletes | None = None,
    ) -> None:
        """`columns` are the names that Spark requests, `predicates` are its filters. `key_deletes` has the deletes that
        executors compare with rows, if there are any."""
        self._view = view
        self._columns = columns
        self._key_deletes = key_deletes
        keys = () if key_deletes is None else key_deletes.columns
        self._layouts = Layouts(view, context, [*columns, *keys], predicates)
        self._data_files: list[DataFile] = []
        self._described: list[dict[str, Any]] = []
        self._deleted: list[Buffer] = []
        self._constants: dict[str, list[Any]] = {}
        self._constant_types: dict[str, pa.DataType] = {}

    def is_read_by_id(self, file: DataFile) -> bool:
        """Whether all columns, including delete columns, are found in the file by field id or are missing."""
        return self._layouts.is_read_by_id(file)

    def add(
        self,
        file: DataFile,
        deleted: PositionSet,
        *,
        compared: Mapping[str, Any] | None = None,
        reads_deleted: bool = False,
        constants: Mapping[str, pa.Scalar] | None = None,
    ) -> None:
        """Add a file without its deleted rows or, with `reads_deleted`, with only its deleted rows. `compared`
        describes further deletes, which executors compare with the rows.

        `constants` are values of columns that the table does not have, requested or not. Every file of the list must
        have the same names.
        """
        if file.file_format != PARQUET:
            raise UnsupportedFeatureError(
                f"{file.file_path} is an {file.file_format} file, but only Parquet files can be read. Rewrite it as "
                "Parquet with the engine that wrote it."
            )
        described = {
            "path": actual_location(self._view.io, file.file_path),
            "size": file.file_size_bytes,
            "layout": self._layouts.index_of(file),
        }
        if deleted or reads_deleted:
            described |= {"deleted": len(self._deleted), "reads_deleted": reads_deleted}
            self._deleted.append(position_bytes(deleted))
        if compared is not None:
            described["compared"] = compared
        for name, value in (constants or {}).items():
            if name in self._columns:
                self._constants.setdefault(name, []).append(value.as_py())
                self._constant_types[name] = value.type
        self._data_files.append(file)
        self._described.append(described)

    def answer(self) -> Answer:
        constants = self._constant_columns()
        first = [] if constants is None else [arrow_stream(constants)]
        for described in self._described:
            if "deleted" in described:
                described["deleted"] += len(first)
        result = {
            "files": self._described,
            "layouts": self._layouts.to_json(),
            "constants": None if constants is None else spark_schema_of_arrow(constants.schema),
            "s3": s3_options(self._view.io),
        }
        parts = [*first, *self._deleted]
        if self._key_deletes is None or not self._key_deletes.is_used:
            return Answer(result, parts)
        return Answer(result | self._key_deletes.to_json(len(parts)), [*parts, *self._key_deletes.parts])

    def _constant_columns(self) -> pa.Table | None:
        """One row for each file. None if the files contain all requested columns."""
        files = self._data_files
        columns = {name: pa.array(values, self._constant_types[name]) for name, values in self._constants.items()}
        if SPEC_ID in self._columns:
            columns[SPEC_ID] = pa.array([file.spec_id for file in files], pa.int32())
        if PARTITION in self._columns:
            structs = partition_column(self._view.metadata, files)
            columns[PARTITION] = pa.array([{}] * len(files), pa.struct([])) if structs is None else structs
        if ROW_ID.name in self._columns:
            columns[ROW_ID.name] = pa.array([file.first_row_id for file in files], pa.int64())
        if LAST_UPDATED_SEQUENCE_NUMBER.name in self._columns:
            # A file from before version 3 has no lineage, so its rows have no sequence number either.
            numbers = [None if file.first_row_id is None else file.sequence_number for file in files]
            columns[LAST_UPDATED_SEQUENCE_NUMBER.name] = pa.array(numbers, pa.int64())
        for name in self._layouts.lacking_columns():
            columns[name] = self._partition_values(name)
        return pa.table(columns) if columns else None

    def _partition_values(self, name: str) -> pa.Array:
        """DA-6: for each file, the value that its partition gives a column that some file lacks."""
        field = self._view.schema.find_field(name)
        values = [value_where_missing(self._view.metadata, file, field).as_py() for file in self._data_files]
        return pa.array(values, arrow_schema(self._view.schema).field(name).type)
