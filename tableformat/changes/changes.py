"""`Changes`: the change feed of a table as Arrow rows, one row for each event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression

from tableformat.arguments import checked_methods
from tableformat.changes.changed_rows import changed_rows
from tableformat.changes.event_rows import event_rows
from tableformat.changes.plan import ChangePlan, plan_changes
from tableformat.changes.range import ChangeRange
from tableformat.changes.range_drops import RANGE_DROPS, events_of, without_drops
from tableformat.errors import InvalidArgumentError
from tableformat.filters.predicate import Where
from tableformat.merge_on_read.task import RowTask
from tableformat.metadata.change_columns import COMMIT_SNAPSHOT_ID, schema_with_change_columns
from tableformat.operations.options import one_of
from tableformat.operations.ranges.drops import drop_of
from tableformat.scan.arrow_rows import ArrowRows, limited


@checked_methods
class Changes(ArrowRows):
    """The rows that the snapshots of a range deleted and added, ordered by snapshot from oldest to newest, deletes
    before inserts. Applied in that order, they convert the rows of `from_snapshot_id` to the rows of `to_snapshot_id`.

    A delete carries the whole deleted row. An update is a delete and an insert. The feed has the columns of the table,
    `_change_type` ("insert", "delete"), `_commit_version` (the snapshot's sequence number) and `_commit_timestamp`.
    `_commit_snapshot_id`, and on v3 tables the row lineage columns, are only returned if they are named.

    >>> feed = table.changes(columns=["_change_type", "_commit_version", "id1", "num_cal"])
    >>> feed.filter("id1 = 'B'").to_arrow().to_pylist()
    [{'_change_type': 'insert', '_commit_version': 1, 'id1': 'B', 'num_cal': 1}]
    """

    def __init__(
        self,
        changes: ChangeRange,
        where: Where | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        range_drops: str = "rows",
    ) -> None:
        """`where` is SQL text or an expression of PyIceberg, pyarrow.compute or Polars. `columns` are names in the
        requested order. Both may name the columns of the feed.

        Raises UnknownColumnError with the nearest name, InvalidPredicateError or InvalidArgumentError. Raises
        UnsupportedFeatureError for a table with a column that has the name of a feed column.
        """
        view = replace(changes.view, schema=schema_with_change_columns(changes.view.schema))
        if columns is None:
            columns = [field.name for field in view.schema.fields if field != COMMIT_SNAPSHOT_ID]
        super().__init__(view, where, columns, limit)
        self._all = changes
        self._range_drops = one_of(range_drops, RANGE_DROPS, option="range_drops")
        self._range = changes if range_drops == "rows" else without_drops(changes)

    def _subject(self) -> str:
        return f"from snapshot {self.from_snapshot_id} to {self.to_snapshot_id}"

    @property
    def from_snapshot_id(self) -> int | None:
        """The snapshot after which the feed begins. None if it begins with the first snapshot.

        >>> print(table.changes().from_snapshot_id)
        None
        """
        return self._range.from_snapshot_id

    @property
    def to_snapshot_id(self) -> int | None:
        """The last snapshot of the feed. The next feed begins after it.

        >>> seen = table.changes().to_snapshot_id
        >>> result = table.delete_prefix({"id1": "A"})
        >>> table.changes(from_snapshot_id=seen).count()
        2
        """
        return self._range.to_snapshot_id

    def range_events(self) -> pa.Table:
        """The dropped or retired ranges for `range_drops="event"`, one row each, oldest first: `event`, `range` as
        text, `lower`, `upper`, `tag` and the columns of the commit. The commit columns determine their order among the
        rows.

        Raises InvalidArgumentError for other values of `range_drops`, because drops are then rows of the feed, or
        skipped.

        >>> table.changes(range_drops="event").range_events().num_rows
        0
        """
        if self._range_drops != "event":
            raise InvalidArgumentError(
                f"range events need range_drops='event', but this feed has range_drops={self._range_drops!r}. Use "
                "changes(range_drops='event')."
            )
        metadata = self._all.view.metadata
        drops = (drop_of(snapshot, metadata) for snapshot in self._all.snapshots)
        return events_of([drop for drop in drops if drop is not None])

    def plan(self) -> ChangePlan:
        """The files that are read for the events of each snapshot. Metadata is read, and range delete files within a
        budget.

        >>> result = table.delete_prefix({"id1": "A"})
        >>> len(table.changes().plan().tasks)
        2
        """
        changes = replace(self._range, view=self._view)
        tasks = tuple(plan_changes(changes, self._where, context=self._context.merge))
        return ChangePlan(self.from_snapshot_id, self.to_snapshot_id, tasks)

    def _tasks(self) -> Iterable[RowTask]:
        changes = replace(self._range, view=self._view)
        found = changed_rows(changes.view, changes.snapshots, self._where, context=self._context.merge)
        return (task.scan for task in found)

    def _tables(self) -> Iterator[pa.Table]:
        changes = replace(self._range, view=self._view)
        is_hasty = self._limit is not None
        events = event_rows(changes.view, changes.snapshots, self._where, self._context, is_hasty=is_hasty)
        return limited(events, self._limit)

    def _with(self, where: BooleanExpression, columns: Sequence[str] | None) -> Changes:
        return Changes(self._all, where, columns, self._limit, self._range_drops)
