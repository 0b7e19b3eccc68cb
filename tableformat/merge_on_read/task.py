"""`FileScanTask`: one data file to read and what decides which of its rows are alive, as plain data for any process."""

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
    """A data file with the deletes that apply to it. No reader compares sequence numbers again, except where a field
    says so."""

    data_file: DataFile
    position_deletes: tuple[DeleteFile, ...] = ()
    """Position delete files that may name rows of the data file (DA-1); empty when there is a deletion vector (DA-7).
    """
    deletion_vector: DeleteFile | None = None
    """The deletion vector of the data file, if it has one."""
    equality_deletes: tuple[DeleteFile, ...] | NewerDeletes = ()
    """Equality delete files newer than the data (DA-2), in scope (DA-3), whose bounds may meet the data file's; where
    these are most of many, all newer ones of a list that the files of the plan share."""
    range_deletes: tuple[RangeDeletes, ...] = ()
    """One for each list of delete columns: disjoint sorted spans newer than the data (RD-2), limited to the file's
    bounds (RD-12), or where they would be many the range of fragments that they are made of."""
    range_delete_files: tuple[DeleteFile, ...] = ()
    """Range delete files in scope whose spans were not loaded at plan time because they exceed the span budget. Their
    spans may carry sequence numbers of their own (RD-8), so whoever loads them applies RD-2 span by span."""
    residual: BooleanExpression = field(default_factory=AlwaysTrue)
    """What is left of the scan's filter for rows of this file, over the names of the scan's schema; not bound."""
    reasons: tuple[str, ...] = ()
    """For people: why the file is read, and why deletes apply or were ruled out."""

    @property
    def has_deletes(self) -> bool:
        """Whether any row of the file may be left out."""
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
    """A scan task of which fewer rows are wanted than its deletes leave: what a transaction and the change feed need.

    snapshots      scan is of 7, dead_in of 8        rows  0 1 2 3      deleted in 7  1      deleted in 8  1 2
    left out       0 1 3: of the rows alive in 7 those that are alive in 8 too, and those deleted in 7
    """

    scan: FileScanTask
    known_positions: PositionSet | None = None
    """Rows that are deleted for certain: by a verb of the same transaction."""
    dead_in: FileScanTask | None = None
    """CF-3: the same file in another snapshot; of the rows that are alive here only those count that are not alive
    there."""
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
        """Whether any row of the file may be left out."""
        return self.scan.has_deletes or bool(self.known_positions) or self.dead_in is not None


RowTask: TypeAlias = FileScanTask | NarrowedTask
"""What a reader reads."""


def scan_of(task: RowTask) -> FileScanTask:
    """The data file with the deletes of its snapshot."""
    return task.scan if isinstance(task, NarrowedTask) else task


def only_rows(task: RowTask, found: PositionSet) -> NarrowedTask:
    """A task of these live rows alone."""
    every_row = PositionSet.every(task.data_file.record_count)
    return NarrowedTask(scan=scan_of(task), known_positions=every_row.minus(found))
