"""`dry_run="metadata"`: the upper limit of a delete, without opening a data file (CP-88)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table as IcebergTable

from tableformat.commit.change import NO_SNAPSHOT
from tableformat.commit.unchanged import check_unchanged
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.merge_on_read.task import RowTask
from tableformat.metadata.content_file import DataFile
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.result import CommitResult, DeleteEstimate
from tableformat.operations.staging.scope import Scope
from tableformat.scan.planner import plan_scan


class EstimatingDraft(Draft):
    """A draft that records the filters and spans of its operation. It writes no file, and the operation finds no
    rows."""

    def __init__(self, iceberg: IcebergTable, branch: str) -> None:
        super().__init__(iceberg, branch)
        self._scope = self._blind.scope = self._change.scope = Scope(NO_SNAPSHOT)

    def plan(
        self,
        where: BooleanExpression | None = None,
        *,
        may_match: Callable[[DataFile], bool] | None = None,  # noqa: ARG002 - the filter or the spans choose files
        covered: SpanArray | None = None,
    ) -> tuple[RowTask, ...]:
        if covered is not None:
            self._scope.add_spans(covered)
        else:
            self._scope.state(where)
        return ()

    def estimate(self, options: CommitOptions) -> DeleteEstimate:
        """The estimate. CP-83 is checked as in the commit."""
        self._write_blind_deletes()
        if options.if_unchanged_since is not None:
            scope = replace(self._scope.on(self.view, (), self.schema), snapshot_id=options.if_unchanged_since)
            check_unchanged(scope, self.view, self.name)
        plans = [plan_scan(self.view, where, context=self.merge_context) for where in self._scope.filters]
        plans += [
            plan_scan(self.view, context=self.merge_context, touching=sort_and_merge(spans))
            for spans in self._scope.spans
        ]
        tasks = (task for plan in plans for task in plan.tasks)
        return DeleteEstimate.of({task.data_file.file_path: task.data_file for task in tasks}.values())

    def _write_blind_deletes(self) -> None:
        self._blind.take_keys()
        self._blind.take_spans()


def estimate_verb(
    verb: Callable[[Draft], None], new_draft: Callable[[], EstimatingDraft], options: CommitOptions
) -> CommitResult:
    """The result of an operation that only deletes, estimated from metadata at the head of the branch."""
    started = time.perf_counter()
    draft = new_draft()
    if draft.is_applied(options):
        return replace(draft.unchanged(already_applied=True, started=started), dry_run=True)
    verb(draft)
    estimate = draft.estimate(options)
    result = draft.unchanged(already_applied=False, started=started)
    return replace(result, deleted_row_count=None, dry_run=True, estimate=estimate)
