"""Checks rows that a branch gets from an earlier snapshot against the current CHECK constraints and required columns
(CK-10).

    staged     P ---- s (n = -5)
    main       P ---- m    then CHECK n >= 0    then s is published: its row breaks the constraint of the branch
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import IsNull, Reference
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import TableRequirement, ValidatableTableRequirement

from tableformat.commit.required_columns import newly_required
from tableformat.commit.rest_catalog import is_rest
from tableformat.errors import InvalidArgumentError
from tableformat.filters.bound_filter import comparisons, to_expression
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.metadata_log import logged_since
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.context import ReadContext
from tableformat.scan.planner import plan_scan
from tableformat.scan.reader import read_tables
from tableformat.write.rows.checks import RowCheck, check_conditions, row_checks


def refuse_rows_that_do_not_fit(
    made_in: SnapshotView, data_files: Sequence[DataFile], metadata: TableMetadata, *, since: Snapshot, table: str
) -> None:
    """CK-10, LK-9: raise InvalidArgumentError if a live row in these files of a snapshot breaks a constraint of the
    table or has no value in a column that is now required. Otherwise like `refuse_rows_that_break_checks`."""
    _refuse_nulls(made_in, data_files, metadata.schema(), table)
    refuse_rows_that_break_checks(made_in, data_files, metadata, since=since, table=table)


def _refuse_nulls(made_in: SnapshotView, data_files: Sequence[DataFile], now: Schema, table: str) -> None:
    for field in newly_required(made_in.schema, now):
        name = made_in.schema.find_column_name(field.field_id)
        assert name is not None, "the column was optional at that time"
        tasks = plan_scan(made_in, IsNull(term=Reference(name)), data_files=data_files).tasks
        if next(read_tables(tasks, ReadContext.of(made_in, [name])), None) is not None:
            raise InvalidArgumentError(
                f"rows of snapshot {_id(made_in)} have no value in {field.name!r}, which {table} now requires. "
                "Nothing was changed. Read the snapshot, and append the valid rows."
            )


def refuse_rows_that_break_checks(
    made_in: SnapshotView, data_files: Sequence[DataFile], metadata: TableMetadata, *, since: Snapshot, table: str
) -> None:
    """CK-10: raise InvalidArgumentError if a live row in these files of a snapshot breaks a constraint of the table.

    Rows were checked against the constraints that existed when the snapshot `since` was made. If these are unchanged,
    no row is read. Otherwise, or if they are not known, raises UnsupportedFeatureError for a constraint that only Spark
    can enforce.
    """
    conditions = check_conditions(metadata.properties)
    if not conditions or conditions == _conditions_when_made(since, metadata, made_in.io):
        return
    view = replace(made_in, metadata=metadata, schema=metadata.schema())
    for check in row_checks(metadata.properties, view.schema, table=table):
        example = _broken_row(check, view, data_files)
        if example is not None:
            raise InvalidArgumentError(
                f"rows of snapshot {_id(made_in)} violate the CHECK constraint {check.name!r} of {table}, "
                f"{check.condition}, for example one with {example}. Nothing was changed. Read the snapshot, and "
                "append the valid rows."
            )


def checks_are(metadata: TableMetadata, catalog: Catalog) -> tuple[TableRequirement, ...]:
    """CK-3: the requirement that the constraints are unchanged, for catalogs that check requirements in this
    process."""
    if is_rest(catalog):
        return ()
    # PyIceberg's union of requirements lists only requirements that a catalog server knows.
    return (cast(TableRequirement, _ChecksAre(conditions=check_conditions(metadata.properties))),)


class _ChecksAre(ValidatableTableRequirement):
    """Checked by catalogs that check requirements in this process."""

    type: str = "assert-check-constraints"
    conditions: Mapping[str, str]

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override] # as PyIceberg's own
        """Raises CommitFailedException if a constraint was changed concurrently."""
        if base_metadata is not None and check_conditions(base_metadata.properties) != self.conditions:
            raise CommitFailedException("Requirement failed: the CHECK constraints were changed concurrently")


def _conditions_when_made(snapshot: Snapshot, metadata: TableMetadata, io: FileIO) -> Mapping[str, str] | None:
    """The constraints in the metadata with which the snapshot was committed. None if the log never had that metadata,
    no longer has it, or its file was removed by others; then the rows must be read."""
    log = metadata.metadata_log
    if not log:
        return None
    for entry, logged in logged_since(metadata, io, snapshot.timestamp_ms):
        if logged is None:
            return None
        if snapshot_by_id(logged, snapshot.snapshot_id) is not None:
            return None if entry is log[0] else check_conditions(logged.properties)
    return check_conditions(metadata.properties)


def _broken_row(check: RowCheck, view: SnapshotView, data_files: Sequence[DataFile]) -> Mapping[str, object] | None:
    """A row that breaks the constraint, or None. Files are excluded by their metadata; the others are read, with their
    deletes applied."""
    columns = sorted({leaf.path[0] for leaf in comparisons(check.broken)})
    tasks = plan_scan(view, to_expression(check.broken), data_files=data_files).tasks
    found = next(read_tables(tasks, ReadContext.of(view, columns)), None)
    return None if found is None else found.slice(0, 1).to_pylist()[0]


def _id(view: SnapshotView) -> int:
    assert view.snapshot is not None, "files are of a snapshot"
    return view.snapshot.snapshot_id
