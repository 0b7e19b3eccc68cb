"""Position delete files: one for each data file, in the data file's own spec and partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
from pyiceberg.types import LongType

from tableformat.deletes.codecs.position_rows import FILE_PATH, FILE_PATH_FIELD_ID, POSITION, POSITION_FIELD_ID
from tableformat.deletes.positions import PositionSet
from tableformat.errors import UnsupportedFeatureError
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import DataFile, DeleteFile, FileContent
from tableformat.write.context import WriteContext
from tableformat.write.created_files import CreatedFiles, removed_on_failure
from tableformat.write.delete_files.delete_files import delete_file, write_parquet_file

_PATH_TYPE: Final = pa.dictionary(pa.int32(), pa.string())
"""The single path is stored once for any number of positions."""
_SCHEMA: Final = pa.schema(
    [
        pa.field(
            FILE_PATH, _PATH_TYPE, nullable=False, metadata={b"PARQUET:field_id": str(FILE_PATH_FIELD_ID).encode()}
        ),
        pa.field(POSITION, pa.int64(), nullable=False, metadata={b"PARQUET:field_id": str(POSITION_FIELD_ID).encode()}),
    ]
)


def write_position_deletes(context: WriteContext, deleted: Mapping[DataFile, PositionSet]) -> list[DeleteFile]:
    """One delete file for every data file with positions to delete, in the given order. After a failure none is left.

    DA-1, DA-10, FM-10: `referenced_data_file` and the equal bounds of the path name the data file exactly, so readers
    need not open the delete file. Spec and partition are taken from the data file. Raises UnsupportedFeatureError for a
    v3 table, where the specification requires deletion vectors.
    """
    if context.format_version >= 3:
        raise UnsupportedFeatureError(
            "a table of format version 3 does not accept new position delete files; write deletion vectors."
        )
    with removed_on_failure(context) as created:
        return [_write(context, created, data, positions) for data, positions in deleted.items() if positions]


def _write(context: WriteContext, created: CreatedFiles, data: DataFile, positions: PositionSet) -> DeleteFile:
    rows = positions.to_array()
    paths = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), dtype=np.int32)), pa.array([data.file_path]))
    table = pa.Table.from_arrays([paths, pa.array(rows)], schema=_SCHEMA)
    location, written = write_parquet_file(
        context,
        created,
        table,
        spec_id=data.spec_id,
        partition=data.partition,
        dictionary_columns=["file_path"],
    )
    path = data.file_path.encode()
    return delete_file(
        location,
        written.size_bytes,
        content=FileContent.POSITION_DELETES,
        spec_id=data.spec_id,
        partition=data.partition,
        record_count=len(rows),
        referenced_data_file=data.file_path,
        value_counts={FILE_PATH_FIELD_ID: len(rows), POSITION_FIELD_ID: len(rows)},
        null_value_counts={FILE_PATH_FIELD_ID: 0, POSITION_FIELD_ID: 0},
        lower_bounds={FILE_PATH_FIELD_ID: path, POSITION_FIELD_ID: to_bound(int(rows[0]), LongType())},
        upper_bounds={FILE_PATH_FIELD_ID: path, POSITION_FIELD_ID: to_bound(int(rows[-1]), LongType())},
    )
