"""`FileScanTask`: one data file to read, and everything that decides which of its rows are alive, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.fragment_range import RangeDeletes
from tableformat.merge_on_read.newer_deletes import NewerDeletes
from tableformat.metadata.content_file import DataFile, DeleteFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScanTask:
    """A data file with the deletes that apply to it. Readers do not compare sequence numbers again, unless a field says
    so."""

    data_file: DataFile
    position_deletes: tuple[DeleteFile, ...] = ()
    """Position delete files that may name rows of the data file (DA-1); empty if there is a deletion vector (DA-7)."""
    deletion_vector: DeleteFile | None = None
    """The deletion vector of the data file, if it has one."""
    equality_deletes: tuple[DeleteFile, ...] | NewerDeletes = ()
    """Equality delete files that are newer than the data (DA-2), in scope (DA-3), and whose bounds overlap those of the
    data file. If these are most of many, all newer ones of a list that the files of the plan share."""
    range_deletes: tuple[RangeDeletes, ...] = ()
    """For each list of delete columns: disjoint sorted spans that are newer than the data (RD-2), limited to the file's
    bounds (RD-12). If they are many, the range of fragments from which they are made."""
    range_delete_files: tuple[DeleteFile, ...] = ()
    """Range delete files in scope whose spans were not loaded for planning, because they exceed the span budget. Their
    spans may have sequence numbers of their own (RD-8), so their reader applies RD-2 to each span."""
    residual: BooleanExpression = field(default_factory=AlwaysTrue)
    """The residual filter for rows of this file, over the names of the scan's schema; not bound."""
    reasons: tuple[str, ...] = ()
    """For people: why the file is read, and why deletes apply or were excluded."""

    @property
    def has_deletes(self) -> bool:
        """Whether a row of the file may be left out."""
        return bool(
            self.position_deletes
            or self.deletion_vector
            or self.equality_deletes
            or self.range_deletes
            or self.range_delete_files
        )

    @property
    def delete_files(self) -> tuple[DeleteFile, ...]:
        """The delete files that have to be opened to read this task."""
        vector = () if self.deletion_vector is None else (self.deletion_vector,)
        return (*self.position_deletes, *vector, *self.equality_deletes, *self.range_delete_files)


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowedTask:
    """A scan task that returns fewer rows than its deletes leave. Transactions and the change feed need it.

    snapshots      scan is of 7, dead_in of 8        rows  0 1 2 3      deleted in 7  1      deleted in 8  1 2
    left out       0 1 3: rows alive in 7 that are alive in 8 too, and those deleted in 7
    """

    scan: FileScanTask
    known_positions: PositionSet | None = None
    """Rows that an operation of the same transaction deleted."""
    dead_in: FileScanTask | None = None
    """CF-3: the same file in another snapshot. Rows that are alive there are left out."""
    constants: Mapping[int, Any] = field(default_factory=dict, hash=False)
    """CF-5: values of columns that no data file stores, by field id, in Iceberg's internal representation."""

    @property
    def data_file(self) -> DataFile:
        return self.scan.data_file

    @property
    def residual(self) -> BooleanExpression:
        return self.scan.residual

    @property
    def has_deletes(self) -> bool:
        """Whether a row of the file may be left out."""
        return self.scan.has_deletes or bool(self.known_positions) or self.dead_in is not None


RowTask: TypeAlias = FileScanTask | NarrowedTask
"""The input of a reader."""


def scan_of(task: RowTask) -> FileScanTask:
    """The data file with the deletes of its snapshot."""
    return task.scan if isinstance(task, NarrowedTask) else task


def only_rows(task: RowTask, found: PositionSet) -> NarrowedTask:
    """A task with only these live rows."""
    every_row = PositionSet.every(task.data_file.record_count)
    return NarrowedTask(scan=scan_of(task), known_positions=every_row.minus(found))
