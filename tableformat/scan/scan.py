"""`Scan`: chosen rows and columns of one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from pyiceberg.expressions import BooleanExpression

from tableformat.arguments import checked_methods
from tableformat.filters.predicate import Where
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.arrow_rows import ArrowRows
from tableformat.scan.explain import ScanExplanation, explain_plan
from tableformat.scan.plan import ScanPlan
from tableformat.scan.planner import plan_scan


@checked_methods
class Scan(ArrowRows):
    """Rows of one snapshot that match a filter, in no particular order, though the same one every time.

    >>> table.scan(where="id1 = 'A'", columns=["id1", "num_cal"], limit=1).to_arrow().to_pylist()
    [{'id1': 'A', 'num_cal': 1}]
    """

    def __init__(
        self,
        view: SnapshotView,
        where: Where | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> None:
        """`where` is SQL text or an expression of PyIceberg, pyarrow.compute or Polars, `columns` names in
        the order wanted, `limit` a number of rows.

        UnknownColumnError with the nearest name, InvalidPredicateError, InvalidArgumentError.
        """
        super().__init__(view, where, columns, limit)

    def _subject(self) -> str:
        return "no snapshot" if self._view.snapshot is None else f"snapshot {self._view.snapshot.snapshot_id}"

    def plan(self) -> ScanPlan:
        """Which files are read and which deletes apply to them. Reads metadata, and range delete files within a
        budget.

        >>> plan = table.scan(where="id1 = 'A'").plan()
        >>> [task.data_file.record_count for task in plan.tasks]
        [3]
        """
        return self._plan

    @cached_property
    def _plan(self) -> ScanPlan:
        return plan_scan(self._view, self._where, context=self._context.merge)

    def explain(self) -> ScanExplanation:
        """Why the scan reads what it reads; prints as a report, `to_dict()` for programs.

        >>> result = table.delete_prefix({"id1": "A"})
        >>> [(file.verdict, file.reasons) for file in table.scan().explain().files]
        [('partial', ('1 newer deleted key ranges overlap its bounds',))]
        """
        return explain_plan(self._plan)

    def _tasks(self) -> Iterable[FileScanTask]:
        return self._plan.tasks

    def _with(self, where: BooleanExpression, columns: Sequence[str] | None) -> Scan:
        return Scan(self._view, where, columns, self._limit)
