"""State that the scans of one table share (its metadata, its FileIO and caches of data read through it), and state that
the tasks of one scan share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema

from tableformat.cached_property import cached_property
from tableformat.merge_on_read.deleted_positions import MergeCaches, MergeContext
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.parquet.projection import select_columns
from tableformat.scan.measures import ScanMeter, Step, StepCall
from tableformat.scan.row_lineage_columns import row_lineage_columns, selectable_columns
from tableformat.storage.forks import new_lock
from tableformat.storage.location import local_path

_caches: Final[WeakKeyDictionary[FileIO, MergeCaches]] = WeakKeyDictionary()
_lock: Final = new_lock()


def merge_context(view: SnapshotView) -> MergeContext:
    """A context for the view, with the caches of all views that read through the same FileIO.

    Files are immutable, so cached data stays correct. It is dropped together with the FileIO, that is, with the table
    handle.
    """
    with _lock:
        caches = _caches.setdefault(view.io, MergeCaches())
    return MergeContext(view.metadata, view.io, caches)


@dataclass(frozen=True)
class ReadContext:
    """State that all tasks of a scan share."""

    merge: MergeContext
    schema: Schema
    """The view's schema; names in filters are resolved with it."""
    selected: Schema
    """The columns to return."""
    has_stored_lineage: bool = False
    """Row lineage columns have only the values stored in the files. The files are not committed yet, so no row
    inherits."""
    meter: ScanMeter | None = None
    """Collects the measures of the scan's steps; None without measuring."""

    @staticmethod
    def of(view: SnapshotView, columns: Sequence[str] | None = None) -> ReadContext:
        """`columns` are columns of the view's schema and, on v3 tables, the row lineage columns.

        Raises UnknownColumnError for any other column, UnsupportedFeatureError for row lineage before v3.
        """
        selectable = selectable_columns(view.schema, columns, view.metadata.format_version)
        return ReadContext(merge_context(view), view.schema, select_columns(selectable, columns))

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """Schema of every batch."""
        return arrow_schema(self.selected)

    def measure(self, step: Step) -> AbstractContextManager[StepCall]:
        """A block of work of one step. The block fills in the measures of the returned call."""
        return nullcontext(StepCall()) if self.meter is None else self.meter.measure(step)

    @cached_property
    def row_lineage(self) -> tuple[str, ...]:
        """The selected row lineage columns, whose values rows can inherit."""
        return row_lineage_columns(self.selected)

    @cached_property
    def has_local_files(self) -> bool:
        return local_path(self.merge.metadata.location) is not None
