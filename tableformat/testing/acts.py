"""Acts of the stateful test, each one commit: an operation, a transaction, a job, a rewrite of data files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import pyarrow as pa
from hypothesis import strategies as st
from pyiceberg.table.snapshots import Operation

from tableformat.commit import transaction
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.row_lineage import ROW_LINEAGE_NAMES
from tableformat.scan.context import ReadContext
from tableformat.scan.planner import plan_scan
from tableformat.scan.reader import read_tables
from tableformat.table import Table
from tableformat.testing.replacing import replaced
from tableformat.testing.verbs import Verb, verbs
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_files import write_data_files


class Act(Protocol):
    """One commit."""

    @property
    def verbs(self) -> tuple[Verb, ...]:
        """Its operations on rows, in order; empty for a job."""

    @property
    def may_conflict(self) -> bool:
        """Whether it fails with a conflict if others commit first. Single operations and jobs of the library start
        again."""

    def numbered(self, numbers: Iterator[int]) -> Act:
        """The act with rows that no other act writes."""

    def commit(self, table: Table) -> int | None:
        """Commit it, and return the snapshot of the table afterwards."""


@dataclass(frozen=True, slots=True)
class OneVerb:
    verb: Verb

    may_conflict = False

    @property
    def verbs(self) -> tuple[Verb, ...]:
        return (self.verb,)

    def numbered(self, numbers: Iterator[int]) -> OneVerb:
        return OneVerb(self.verb.numbered(numbers))

    def commit(self, table: Table) -> int | None:
        result = self.verb.apply_to_table(table)
        assert result is not None, "operations of a table have a result"
        return result.snapshot_id


@dataclass(frozen=True, slots=True)
class InTransaction:
    """Several operations in one snapshot. Rows that the transaction has read cannot be read again after a conflict."""

    verbs: tuple[Verb, ...]

    may_conflict = True

    def numbered(self, numbers: Iterator[int]) -> InTransaction:
        return InTransaction(tuple(verb.numbered(numbers) for verb in self.verbs))

    def commit(self, table: Table) -> int | None:
        with table.transaction() as open_transaction:
            for verb in self.verbs:
                verb.apply_to_table(open_transaction)
        return open_transaction.result.snapshot_id


@dataclass(frozen=True, slots=True)
class Job:
    """A job of `Table.maintenance` that changes files but no rows."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    verbs = ()
    may_conflict = False

    def numbered(self, numbers: Iterator[int]) -> Job:  # noqa: ARG002 (it writes no rows)
        return self

    def commit(self, table: Table) -> int | None:
        getattr(table.maintenance, self.name)(**self.options)
        return table.refresh().snapshot_id


_WITH_ROW_LINEAGE: Final = 3
EVERY_FILE: Final = tuple(range(8))
"""Picks for a rewrite that replaces all files of a small table."""
CONVERSION: Final = Job("convert_deletes")
"""Converts equality and range deletes to position deletes."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Writes the live rows of some data files to new ones, planned on the handle's snapshot (CP-7 to CP-9)."""

    picks: tuple[int, ...]
    """Indexes of the data files, modulo their number."""

    verbs = ()
    may_conflict = True

    def numbered(self, numbers: Iterator[int]) -> Rewrite:  # noqa: ARG002 (the rows are there already)
        return self

    def commit(self, table: Table) -> int | None:
        view = table.view
        tasks = plan_scan(view).tasks
        if not tasks or view.snapshot is None:
            return table.snapshot_id
        chosen = [tasks[index] for index in sorted({pick % len(tasks) for pick in self.picks})]
        change = TableChange(
            operation=Operation.REPLACE,
            kind=ChangeKind.REWRITE,
            added_data_files=_rewritten(table, chosen),
            removed_data_files=tuple(task.data_file for task in chosen),
            planned_snapshot_id=view.snapshot.snapshot_id,
            planned_sequence_number=view.sequence_number,
        )
        outcome = transaction.commit_change(table.iceberg, change, ref=table.branch)
        outcome.move(table.iceberg)
        return outcome.snapshot_id


def _rewritten(table: Table, tasks: list[FileScanTask]) -> tuple[DataFile, ...]:
    """CP-7: new files with the sequence number of the snapshot that was read. FM-20: rows keep their lineage."""
    view = table.view
    read, write = ReadContext.of(view), WriteContext.of(view.metadata, view.io)
    if write.format_version >= _WITH_ROW_LINEAGE:
        read = ReadContext.of(view, [*(field.name for field in view.schema.fields), *ROW_LINEAGE_NAMES])
        write = write.with_row_lineage()
    live = list(read_tables(tasks, read))
    if not live:
        return ()
    staged = write_data_files(write, pa.concat_tables(live))
    return tuple(replace(data, sequence_number=view.sequence_number) for data in staged.data_files)


@contextmanager
def interrupted_by(others: Callable[[], None]) -> Iterator[None]:
    """Let others commit between the plan and the commit of the first commit in the block."""
    waiting = [others]
    commit_change = transaction.commit_change

    def commit(*arguments: Any, **options: Any) -> Any:
        while waiting:
            waiting.pop()()
        return commit_change(*arguments, **options)

    with replaced(commit_change, commit):
        yield


@st.composite
def acts(draw: st.DrawFn) -> Act:
    """Any act; half of them are single operations."""
    return draw(_ACTS)


@st.composite
def jobs(draw: st.DrawFn) -> Act:
    """Acts that change files but no rows."""
    return draw(_JOBS)


_PICKS: Final = st.just(EVERY_FILE) | st.lists(st.sampled_from(EVERY_FILE), min_size=1, max_size=3).map(tuple)
_OTHER_JOBS: Final = st.sampled_from(
    [
        Job("compact", {"rewrite_all": True}),
        Job("compact", {"rewrite_all": True, "drop_dead_deletes": False}),
        Job("compact", {"min_input_files": 2}),
        Job("compact", {"depth": "fold", "delete_file_threshold": 1}),
        Job("upkeep"),
        Job("merge_range_deletes"),
        Job("rewrite_position_delete_files"),
        Job("drop_dead_deletes"),
        Job("rewrite_manifests"),
        Job("compute_table_stats"),
    ]
)
_JOBS: Final[st.SearchStrategy[Act]] = st.one_of(
    st.just(CONVERSION), st.just(CONVERSION), _PICKS.map(Rewrite), _PICKS.map(Rewrite), _OTHER_JOBS
)
_VERBS: Final[st.SearchStrategy[Act]] = verbs().map(OneVerb)
_TRANSACTIONS: Final[st.SearchStrategy[Act]] = st.lists(verbs(), min_size=2, max_size=4).map(tuple).map(InTransaction)
_ACTS: Final = st.one_of(_VERBS, _VERBS, _TRANSACTIONS, _JOBS)
