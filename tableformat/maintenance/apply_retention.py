"""`apply_retention`: deletes the rows that are older than the table's retention (MT-107 to MT-110)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from pyiceberg.table import Table as IcebergTable

from tableformat.commit.table_diff import ancestors_of
from tableformat.deletes.rules import committed_sequence_number, range_delete_is_new_enough
from tableformat.markup.results import HtmlResult
from tableformat.merge_on_read.task import RowTask
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.summary_names import JOB
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.run import run_verb
from tableformat.operations.verbs.delete import delete
from tableformat.range_partitions.retention import RetentionRule, refuse_two_retentions, retention_of
from tableformat.scan.planner import plan_scan

APPLIED: Final = "tableformat.retained"
"""Name in the summary of a snapshot for the rule that it applied and the rule's cutoff (MT-109)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedRule:
    """One rule of a run."""

    rule: str
    """The text of the rule in the property."""
    cutoff: str
    """The first value that stays."""
    data_files_count: int
    """Data files that may have held old rows."""
    row_count_max: int
    """The number of rows in these files: an upper bound of the old rows."""
    snapshot_id: int | None
    """The snapshot that deleted the old rows; None if there was nothing to do, and for a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRetentionResult(HtmlResult):
    """The outcome of a run; with `dry_run` its plan. No data file was opened."""

    rules: tuple[AppliedRule, ...] = ()
    data_files_count: int = 0
    """Data files that may have held old rows, of all rules."""
    added_delete_files_count: int = 0
    dry_run: bool = False
    duration_seconds: float = 0.0


def apply_retention(
    iceberg: IcebergTable, branch: str, *, dry_run: bool = False, now: datetime | None = None
) -> ApplyRetentionResult:
    """MT-107: apply each rule of `tableformat.retain` in a separate snapshot.

    MT-109: a rule creates no snapshot if no data file may hold old rows. Raises InvalidArgumentError for a property
    that another engine has set and that does not fit the table.
    """
    started = time.perf_counter()
    move_to_newest(iceberg)
    moment = datetime.now(UTC) if now is None else now
    refuse_two_retentions(iceberg.metadata.properties, iceberg.metadata.schema())
    applied: list[AppliedRule] = []
    added = 0
    for rule in retention_of(iceberg.metadata.properties, iceberg.metadata.schema()):
        due = due_files(Draft(iceberg, branch).view, rule, moment)
        snapshot_id = None
        if due and not dry_run:
            options = CommitOptions(snapshot_properties={APPLIED: _mark(rule, moment), JOB: "apply_retention"})
            verb = partial(delete, where=rule.old_rows(moment))
            result = run_verb(verb, partial(Draft, iceberg, branch), options, one_shot=False)
            snapshot_id, added = result.snapshot_id, added + result.added_delete_files_count
        applied.append(
            AppliedRule(
                rule=rule.text,
                cutoff=rule.cutoff_text(moment),
                data_files_count=len(due),
                row_count_max=sum(task.data_file.record_count for task in due),
                snapshot_id=snapshot_id,
            )
        )
    return ApplyRetentionResult(
        rules=tuple(applied),
        data_files_count=sum(each.data_files_count for each in applied),
        added_delete_files_count=added,
        dry_run=dry_run,
        duration_seconds=time.perf_counter() - started,
    )


def due_files(view: SnapshotView, rule: RetentionRule, now: datetime) -> Sequence[RowTask]:
    """MT-109: the data files that may hold old rows by their bounds. Files to which a snapshot in this history has
    already applied the rule with this cutoff are left out."""
    tasks = plan_scan(view, rule.old_rows(now)).tasks
    number = _applied_number(view, _mark(rule, now)) if tasks else None
    if number is None:
        return tasks
    return [task for task in tasks if not range_delete_is_new_enough(number, committed_sequence_number(task.data_file))]


def _applied_number(view: SnapshotView, mark: str) -> int | None:
    for snapshot in ancestors_of(view.metadata, view.snapshot):
        if snapshot.summary is not None and snapshot.summary.additional_properties.get(APPLIED) == mark:
            return snapshot.sequence_number
    return None


def _mark(rule: RetentionRule, now: datetime) -> str:
    return f"{rule.text} < {rule.cutoff_text(now)}"
