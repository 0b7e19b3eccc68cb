"""The delete files that apply to a data file, by the same indexes that plan scans."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.table.metadata import TableMetadata

from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.scan.delete_columns import field_history
from tableformat.scan.delete_index import ColumnTypes, KeyDeleteIndex, PositionDeleteIndex

_POSITIONAL = (DeleteKind.POSITION, DeleteKind.DELETION_VECTOR)


class ApplicableDeletes:
    """Delete files, to be asked about many data files."""

    def __init__(self, metadata: TableMetadata, deletes: Iterable[DeleteFile]) -> None:
        candidates = list(deletes)
        self._positions = PositionDeleteIndex(delete for delete in candidates if delete.kind in _POSITIONAL)
        self._keyed = KeyDeleteIndex(
            (delete for delete in candidates if delete.kind not in _POSITIONAL),
            dict(metadata.specs()),
            ColumnTypes({field_id: field.field_type for field_id, field in field_history(metadata).items()}),
        )

    def of(self, data: DataFile) -> tuple[DeleteFile, ...]:
        """Those that number, scope and bounds allow to meet a row of the data file (DA-1 to DA-3, DA-7, RD-2, RD-3)."""
        vector = self._positions.vector_of(data)
        by_position = (vector,) if vector is not None else self._positions.position_deletes_of(data)
        return (*by_position, *self._keyed.deletes_of(data))
