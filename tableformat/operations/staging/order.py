"""Comparisons of a draft by the order column, and whether other commits have invalidated them (CP-73)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, TypeAlias

import pyarrow as pa
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.commit.ordered_deletes import (
    OWN,
    STALE_ROWS,
    NewestDelete,
    newest_forgotten_delete,
    ordered_delete_files,
    snapshots_with_ordered_deletes,
)
from tableformat.deletes.spans.coverage import Coverage, classify_many
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import CommitConflictError
from tableformat.keys.internal_values import internal_values_of
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import ORDER_COLUMN
from tableformat.write.rows.last_per_key import order_ranks
from tableformat.write.rows.order_column import order_column

Holds: TypeAlias = Callable[[DataFile], bool]
"""Whether a data file may hold one of certain keys."""


class DraftOrder:
    """The order column of the table, and the deletes of the base and of the draft that have a value in it."""

    def __init__(self, view: SnapshotView) -> None:
        self._view = view
        self._is_asked = False
        self._reads: list[Holds] = []
        self.deletes: list[pa.Table] = []
        """CP-71: the deletes of the draft, including the current operation: key columns, followed by the order column.
        """
        self.stale_row_count = 0
        self.diverted: list[pa.Table] = []
        """Stale rows to return to the caller."""

    def column(self) -> NestedField | None:
        """CP-69: the order column, which the current operation then depends on; None for a table without one."""
        self._is_asked = True
        return order_column(self._view.metadata.properties, self._view.metadata.schema())

    def deletes_of_base(self, field: NestedField, above: Any) -> Iterator[DeleteFile]:
        """CP-71: the files of deletes whose value in the order column is above `above`, as far as their snapshots are
        retained. Without a value, the files of all such deletes."""
        history = ancestors(self._view.metadata, self._view.snapshot)
        found = snapshots_with_ordered_deletes(history, field, above=above)
        return ordered_delete_files(self._view.io, self._view.metadata, found, field)

    def newest_forgotten_delete(self, field: NestedField) -> Any:
        """CP-72: the greatest value of the order column in deletes whose files may no longer exist; None if there is
        none."""
        return newest_forgotten_delete(self._view.metadata, self._view.snapshot, field)

    def note_read(self, holds: Holds) -> None:
        """CP-73: the operation looked up whether certain keys were deleted. `holds`: whether a file may have one of
        them."""
        self._reads.append(holds)

    def summary(self) -> dict[str, str]:
        """FM-34: the summary properties for deletes with a value in the order column, and for stale rows."""
        field = order_column(self._view.metadata.properties, self._view.metadata.schema()) if self._is_asked else None
        stale = {STALE_ROWS: str(self.stale_row_count)} if self.stale_row_count else {}
        if field is None or not self.deletes:
            return stale
        assert isinstance(field.field_type, PrimitiveType), "the order column is not nested"
        values = pa.chunked_array([chunk for each in self.deletes for chunk in each.column(field.name).chunks])
        newest = int(order_ranks(pa.table({"order": values})).argmax())
        (value,) = internal_values_of(pa.concat_arrays(values.slice(newest, 1).chunks), field.field_type)
        return {**stale, OWN: NewestDelete(field.field_id, value).to_text(field.field_type)}

    def with_diverted(self, refused: Sequence[pa.Table]) -> pa.Table | None:
        """Refused rows followed by stale rows, for the caller; None without any."""
        tables = [*refused, *self.diverted]
        return pa.concat_tables(tables, promote_options="permissive") if tables else None

    def check(self, head: SnapshotView, *, table: str) -> None:
        """CP-73: raise CommitConflictError if the head has another order column. Also raise it if another commit has
        since added deletes with a value in it that may contain a key that was looked up."""
        if not self._is_asked:
            return
        ours, theirs = self._view.metadata, head.metadata
        field = order_column(ours.properties, ours.schema())
        now = order_column(theirs.properties, theirs.schema())
        if (None if field is None else field.field_id) != (None if now is None else now.field_id):
            raise CommitConflictError(
                f"the property {ORDER_COLUMN} of {table} was changed while rows were written. Nothing was changed. Run "
                "the operation again."
            )
        if field is None or not self._reads:
            return
        base_id = None if self._view.snapshot is None else self._view.snapshot.snapshot_id
        came = takewhile(lambda each: each.snapshot_id != base_id, ancestors(theirs, head.snapshot))
        found = snapshots_with_ordered_deletes(came, field)
        for delete in ordered_delete_files(head.io, theirs, found, field):
            if any(holds(as_data_file(delete)) for holds in self._reads):
                raise CommitConflictError(
                    f"{delete.file_path} was added to {table} concurrently and deletes rows of keys that this write "
                    "compared. Nothing was changed. Run the operation again."
                )


def may_hold(spans: SpanArray, data: DataFile) -> bool:
    """Whether the file may hold a key of the spans, according to its bounds."""
    return may_hold_each(spans, [data])[0]


def may_hold_each(spans: SpanArray, files: Sequence[DataFile]) -> list[bool]:
    """For each file, whether it may hold a key of the spans, according to its bounds."""
    found = classify_many(spans.with_sequence_number(1), [replace(data, sequence_number=0) for data in files])
    return [coverage is not Coverage.CLEAN for coverage, _ in found]


def as_data_file(delete: DeleteFile) -> DataFile:
    """A delete file in the form of a data file, to read its rows."""
    return DataFile(
        file_path=delete.file_path,
        file_format=delete.file_format,
        spec_id=delete.spec_id,
        partition=delete.partition,
        record_count=delete.record_count,
        file_size_bytes=delete.file_size_bytes,
        sequence_number=0,
        value_counts=delete.value_counts,
        null_value_counts=delete.null_value_counts,
        lower_bounds=delete.lower_bounds,
        upper_bounds=delete.upper_bounds,
    )
