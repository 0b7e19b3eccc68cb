"""`Scan`: the selected rows and columns of one snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pyiceberg.expressions import BooleanExpression

from tableformat.arguments import checked_methods
from tableformat.cached_property import cached_property
from tableformat.filters.bound_filter import TRUE, bind_filter
from tableformat.filters.predicate import Where
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.range_partitions.retired import retired_from, touched_by
from tableformat.scan.arrow_rows import ArrowRows, limited
from tableformat.scan.explain import RetiredExplanation, ScanExplanation, explain_plan
from tableformat.scan.measures import ScanMeter, Step, StepMeasures
from tableformat.scan.plan import HeldPlan, ScanPlan
from tableformat.scan.planner import plan_scan
from tableformat.scan.reader import read_tables
from tableformat.scan.scan_report import ReportedTable


@checked_methods
class Scan(ArrowRows):
    """The rows of one snapshot that match a filter. Their order is not specified, but repeated scans return the same
    order.

    >>> table.scan(where="id1 = 'A'", columns=["id1", "num_cal"], limit=1).to_arrow().to_pylist()
    [{'id1': 'A', 'num_cal': 1}]
    """

    def __init__(
        self,
        view: SnapshotView,
        where: Where | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        table: ReportedTable | None = None,
        held: HeldPlan | None = None,
    ) -> None:
        """`where` is SQL text or an expression of PyIceberg, pyarrow.compute or Polars. `columns` are names in the
        wanted order. `limit` is a number of rows. Reports name `table`. `held` is the plan of another scan of the same
        rows.

        Raises UnknownColumnError with the nearest name, InvalidPredicateError, InvalidArgumentError.
        """
        super().__init__(view, where, columns, limit)
        self._table = table
        self._held = held or HeldPlan()

    def __getstate__(self) -> dict[str, Any]:
        """The reporter is not pickled, because it belongs to this process, and the other process plans again."""
        return {**self.__dict__, "_table": None, "_held": HeldPlan()}

    def _subject(self) -> str:
        return "no snapshot" if self._view.snapshot is None else f"snapshot {self._view.snapshot.snapshot_id}"

    def plan(self) -> ScanPlan:
        """The files to read and the deletes that apply to them. Reads metadata, and range delete files up to a budget.

        >>> plan = table.scan(where="id1 = 'A'").plan()
        >>> [task.data_file.record_count for task in plan.tasks]
        [3]
        """
        return self._plan

    @cached_property
    def _plan(self) -> ScanPlan:
        return self._planned(self._held.plan)

    def _planned(self, held: ScanPlan | None = None) -> ScanPlan:
        started = time.perf_counter()
        plan = held or plan_scan(self._view, self._where, context=self._context.merge)
        self._held.hold(plan)
        if self._table is not None:
            self._table.report(plan, self._context.selected, self._view.schema, time.perf_counter() - started)
        return plan

    def explain(self, *, analyze: bool = False) -> ScanExplanation:
        """Explain which files the scan reads, and why. The result prints as a report; `to_dict()` is for programs.
        `retired` lists the retired ranges with rows that may match, which are not read.

        With `analyze`, the scan is planned again and every row is read, as by `to_batches`, without keeping the rows.
        The report then has time, files, rows and bytes of each step. Contents that this object has cached are not read
        again.

        >>> result = table.delete_prefix({"id1": "A"})
        >>> [(file.verdict, file.reasons) for file in table.scan().explain().files]
        [('partial', ('1 newer deleted key range overlaps its bounds',))]
        >>> steps = table.scan().explain(analyze=True).steps
        >>> [(step.step, step.row_count) for step in steps if step.step in ("find deleted rows", "return")]
        [('find deleted rows', 2), ('return', 1)]
        """
        plan, steps = self._run() if analyze else (self._plan, ())
        return explain_plan(plan, steps, self._retired())

    def _retired(self) -> tuple[RetiredExplanation, ...]:
        """RP-30: retired ranges with rows that may match the filter."""
        retired = retired_from(self._view)
        bound = bind_filter(self._plan.where, self._view.schema) if retired else TRUE
        return tuple(
            RetiredExplanation(
                each.text, each.tag, None if each.retired_at is None else each.retired_at.isoformat(timespec="seconds")
            )
            for each in touched_by(bound, retired)
        )

    def _run(self) -> tuple[ScanPlan, tuple[StepMeasures, ...]]:
        """A new plan, and the measures of its steps."""
        meter = ScanMeter()
        with meter.measure(Step.RETURN) as returned:
            with meter.measure(Step.PLAN) as planned:
                plan = self._planned()
                planned.file_paths.update(task.data_file.file_path for task in plan.tasks)
                planned.row_count, planned.size_bytes = plan.record_count, plan.data_bytes
            for rows in limited(read_tables(plan.tasks, replace(self._context, meter=meter)), self._limit):
                returned.row_count += rows.num_rows
                returned.size_bytes += rows.nbytes
        with meter.measure(Step.FIND_DELETED) as found:
            found.size_bytes = sum(delete.content_size_bytes or delete.file_size_bytes for delete in plan.delete_files)
        return plan, meter.measures()

    def _tasks(self) -> Iterable[FileScanTask]:
        return self._plan.tasks

    def _with(self, where: BooleanExpression, columns: Sequence[str] | None) -> Scan:
        held = self._held if where is self._where else None
        return Scan(self._view, where, columns, self._limit, table=self._table, held=held)
