"""The delete files that apply to a data file, by the indexes that scan planning uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from pyiceberg.table.metadata import TableMetadata

from tableformat.merge_on_read.delete_columns import field_history
from tableformat.merge_on_read.delete_index import (
    ColumnTypes,
    KeyDeleteIndex,
    PositionDeleteIndex,
    by_scope_and_columns,
    named_data_file,
)
from tableformat.merge_on_read.key_overlap import KeyOverlap
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.partition_identity import partition_of

_POSITIONAL = (DeleteKind.POSITION, DeleteKind.DELETION_VECTOR)


class ApplicableDeletes:
    """Delete files, prepared for queries about many data files."""

    def __init__(self, metadata: TableMetadata, deletes: Iterable[DeleteFile]) -> None:
        candidates = list(deletes)
        self._positions = PositionDeleteIndex(delete for delete in candidates if delete.kind in _POSITIONAL)
        self._keyed = KeyDeleteIndex(
            (delete for delete in candidates if delete.kind not in _POSITIONAL),
            dict(metadata.specs()),
            _column_types(metadata),
        )

    def of(self, data: DataFile) -> tuple[DeleteFile, ...]:
        """The delete files that may reach a row of the data file by number, scope and bounds (DA-1 to DA-3, DA-7, RD-2,
        RD-3)."""
        vector = self._positions.vector_of(data)
        by_position = (vector,) if vector is not None else self._positions.position_deletes_of(data)
        return (*by_position, *self._keyed.deletes_of(data))


def reached_data_files(
    metadata: TableMetadata, data_files: Sequence[DataFile], deletes: Sequence[DeleteFile]
) -> list[DataFile]:
    """The data files for which `ApplicableDeletes.of` has delete files. Faster for few deletes and many data files."""
    positional = [delete for delete in deletes if delete.kind in _POSITIONAL]
    named = {named_data_file(delete) for delete in positional}
    partitions = {partition_of(delete) for delete in positional if named_data_file(delete) is None}
    is_met = _meet_bounds(metadata, data_files, [delete for delete in deletes if delete.kind not in _POSITIONAL])
    applicable = ApplicableDeletes(metadata, deletes)
    return [
        data
        for index, data in enumerate(data_files)
        if (is_met[index] or data.file_path in named or (partitions and partition_of(data) in partitions))
        and applicable.of(data)
    ]


def _meet_bounds(
    metadata: TableMetadata, data_files: Sequence[DataFile], deletes: Sequence[DeleteFile]
) -> npt.NDArray[np.bool_]:
    """For each data file whether its bounds overlap those of an equality or range delete file."""
    types = _column_types(metadata)
    met = np.zeros(len(data_files), np.bool_)
    for (_, field_ids), members in by_scope_and_columns(deletes, dict(metadata.specs())).items():
        overlap = KeyOverlap(data_files, types.of(field_ids))
        for delete in members:
            met |= overlap.candidates(delete)
    return met


def _column_types(metadata: TableMetadata) -> ColumnTypes:
    return ColumnTypes.of_fields(field_history(metadata))
