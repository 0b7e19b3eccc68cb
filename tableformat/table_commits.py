"""`TableCommits`: runs the operations of a table and commits them: one by one, in transactions, or from files that
other processes staged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from tableformat import operations
from tableformat.arguments import checked_methods
from tableformat.commit.read_only import refuse_read_only
from tableformat.metadata.newest import read_newest_ranges
from tableformat.metadata.own_handle import own_handle
from tableformat.metadata.snapshot_choice import head_view
from tableformat.operations.options import CommitKeywords, CommitOptions, one_of
from tableformat.table_evolution import TableEvolution
from tableformat.write.staged import StagedFiles

if TYPE_CHECKING:
    from tableformat.maintenance.running.executors import Executor
    from tableformat.operations.staging.covered_positions import Find
    from tableformat.operations.staging.result import CommitResult


@checked_methods
class TableCommits(TableEvolution):
    """A table whose row changes can be committed."""

    _find: Find | None = None
    """Finds the rows for mode="scan"; None: in threads of this process. The process behind a Spark catalog may delegate
    this to executors."""
    _job_executor: Callable[[Any], Executor] | None = None
    """Where procedures of a Spark catalog work on the table; None: in this process."""

    @contextmanager
    def transaction(self, **commit: Unpack[CommitKeywords]) -> Iterator[operations.Transaction]:
        """Several operations in one snapshot, applied in order. Leaving the block by an exception commits nothing.

        A delete also removes rows that the same transaction appended before it, but never rows appended after it.
        `tx.result` is the CommitResult after the block.

        >>> with table.transaction() as tx:
        ...     tx.delete_prefix({"id1": "A"})
        ...     tx.append(pa.table({"id1": ["A"], "id2": [4], "num_cal": [1]}))
        >>> tx.result.added_row_count, table.scan(where="id1 = 'A'").count()
        (1, 1)
        """
        options = CommitOptions.of("transaction", **commit)
        with own_handle(self.iceberg) as own:
            read_newest_ranges(own)
            draft = operations.Draft(own, self.branch)
            transaction = operations.Transaction(draft, options)
            with draft.removing_files_on_failure():
                yield transaction
                result = transaction.commit()
        self._keep_up(result)

    def new_write(
        self,
        *,
        kind: str = "append",
        prefix: Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        on: str | Sequence[str] | None = None,
        lower: Any = None,
        upper: Any = None,
        on_stale: str = "ignore",
    ) -> operations.StagedWrite:
        """A picklable writer for other processes: they write files, and `commit` makes one snapshot of them.

        `kind`: "append"; "replace" with the arguments `prefix` (leading key columns, by default the whole key),
        `order_by` and `on_stale`; or "replace-interval" with `on`, `lower` and `upper`. The arguments mean the same as
        in `replace`, over the rows of all writers, and as in `replace_interval`.

        >>> write = table.new_write(kind="replace", prefix=["id1", "id2"])
        >>> staged = [write.write(pa.table({"id1": ["A"], "id2": [3], "num_cal": [number]})) for number in (7, 8)]
        >>> table.commit(write, staged).added_row_count
        2
        """
        refuse_read_only(self.iceberg)
        with own_handle(self.iceberg) as own:
            read_newest_ranges(own)
            view = head_view(own.metadata, own.io, self.branch)
        return operations.StagedWrite.of(
            view, kind=kind, prefix=prefix, order_by=order_by, on=on, lower=lower, upper=upper, on_stale=on_stale
        )

    def commit(
        self, write: operations.StagedWrite, staged: Sequence[StagedFiles], **commit: Unpack[CommitKeywords]
    ) -> CommitResult:
        """Commit the files that the writers of `new_write` staged, in one snapshot.

        >>> write = table.new_write()
        >>> staged = write.write(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]}))
        >>> table.commit(write, [staged], application_id="loader", batch_id=1).added_row_count
        1
        >>> table.commit(write, [staged], application_id="loader", batch_id=1).already_applied
        True
        """
        return self._run(partial(operations.stage_written, write=write, staged=staged), staged, commit)

    def _run(
        self, verb: partial[None], rows: Any, commit: CommitKeywords, *, dry_run: bool | str | None = None
    ) -> CommitResult:
        """`dry_run` is None if the operation has no such option."""
        if isinstance(dry_run, str):
            one_of(dry_run, ("metadata",), option="a text value of dry_run")
        names = (*verb.keywords,) if dry_run is None else (*verb.keywords, "dry_run")
        options = CommitOptions.of(verb.func.__name__, names, **commit)
        with own_handle(self.iceberg) as own:
            read_newest_ranges(own)
            new_draft = partial(operations.Draft, own, self.branch, find=self._find or operations.find_here)
            if dry_run == "metadata":
                return operations.estimate_verb(
                    operations.repeatable(verb, rows), partial(operations.EstimatingDraft, own, self.branch), options
                )
            if dry_run:
                return operations.dry_run_verb(operations.repeatable(verb, rows), new_draft, options)
            result = operations.run_verb(verb, new_draft, options, one_shot=operations.is_one_shot(rows))
        self._keep_up(result)
        return result

    def _keep_up(self, result: CommitResult) -> None:
        """If something was committed, run the upkeep that the table's properties ask for."""
        if result.attempts:
            from tableformat.maintenance.upkeep.after_commit import after_commit

            after_commit(self.iceberg, self.branch)
