"""Options `isolation-level` and `validate-from-snapshot-id` of an overwrite: which concurrent changes conflict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.conflicts import check_conflicts
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.snapshot_choice import view_at
from tableformat.operations.staging.draft import Draft
from tableformat.properties import SERIALIZABLE
from tableformat.scan.planner import file_filter, plan_scan


@dataclass(frozen=True, slots=True)
class OverwriteValidation:
    """SP-47: check the overwrite for conflicts with all commits since a snapshot. Part of the write's target."""

    level: str
    """`serializable`, or `snapshot`, which also replaces data files that were added concurrently."""
    since: int | None
    """The snapshot; None is the beginning of the table."""

    def check_where(self, draft: Draft, where: BooleanExpression) -> None:
        """Check before the matching rows are replaced. Raises CommitConflictError or SnapshotNotFoundError."""
        self._check(draft, file_filter(draft.view, where), where)

    def check_files(self, draft: Draft, loses_rows: Callable[[DataFile], bool]) -> None:
        """The same check before the rows of some files are replaced."""
        self._check(draft, loses_rows, None)

    def _check(self, draft: Draft, loses_rows: Callable[[DataFile], bool], where: BooleanExpression | None) -> None:
        metadata, io = draft.view.metadata, draft.view.io
        replaced: tuple[DataFile, ...] = ()
        sequence_number = 0
        if self.since is not None:
            then = replace(view_at(metadata, io, self.since), schema=draft.schema)
            tasks = plan_scan(then, where, context=draft.merge_context).tasks
            replaced = tuple(task.data_file for task in tasks if loses_rows(task.data_file))
            sequence_number = then.sequence_number
        change = TableChange(
            operation=Operation.OVERWRITE,
            kind=ChangeKind.SCAN_BASED,
            removed_data_files=replaced,
            planned_snapshot_id=self.since,
            planned_sequence_number=sequence_number,
            may_match=loses_rows if self.level == SERIALIZABLE else _none,
        )
        check_conflicts(change, draft.view, draft.name)


def _none(_: DataFile) -> bool:
    return False
