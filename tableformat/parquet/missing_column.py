"""The values of a column that a data file lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tableformat.parquet.parquet_file import OpenedFile, leaf_values, unreadable_as_corrupt


@dataclass(frozen=True, slots=True)
class MissingColumn:
    """The value of a column that a data file lacks (DA-6)."""

    value: pa.Scalar
    """The value of every row, or of the rows whose struct is not null."""
    struct_id: int | None = None
    """The field id of the struct that contains the column; None at the top level, and if the value is null."""

    def read(self, file: OpenedFile, row_groups: Sequence[int]) -> pa.ChunkedArray:
        """The concatenated values of the rows in the row groups. Raises CorruptFileError, which names the file."""
        starts = file.row_group_starts
        row_count = int(sum(starts[group + 1] - starts[group] for group in row_groups))
        if self.struct_id is None:
            return pa.chunked_array([pa.repeat(self.value, row_count)])
        struct = file.structs.get(self.struct_id)
        if struct is None:
            return pa.chunked_array([pa.nulls(row_count, self.value.type)])
        with unreadable_as_corrupt(file.location):
            reader = file.reader().reader
            rows = reader.read_row_groups(list(row_groups), column_indices=[struct.index], use_threads=False)
            is_there = leaf_values(rows, struct.path).is_valid()
        return pc.if_else(is_there, self.value, pa.scalar(None, self.value.type))
