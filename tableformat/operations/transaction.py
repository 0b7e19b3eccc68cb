"""`Transaction`: several operations in one snapshot."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace as replace_fields
from typing import TYPE_CHECKING, Any, Final

from tableformat.arguments import checked_methods
from tableformat.commit.outcome import CommitOutcome
from tableformat.errors import InvalidArgumentError
from tableformat.filters.predicate import Where
from tableformat.operations.merging.clauses import MergeStatement
from tableformat.operations.options import CommitOptions, RowsLike
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.pending import PendingCommit
from tableformat.operations.staging.result import CommitResult
from tableformat.operations.staging.run import is_one_shot
from tableformat.operations.verbs.append import append
from tableformat.operations.verbs.apply_changes import apply_changes
from tableformat.operations.verbs.delete import delete
from tableformat.operations.verbs.delete_prefix import delete_prefix
from tableformat.operations.verbs.delete_range import delete_range
from tableformat.operations.verbs.delete_ranges import delete_ranges
from tableformat.operations.verbs.delete_rows import delete_rows
from tableformat.operations.verbs.overwrite import overwrite
from tableformat.operations.verbs.replace import replace
from tableformat.operations.verbs.replace_interval import replace_interval, replace_partition
from tableformat.operations.verbs.upsert import upsert
from tableformat.range_partitions.model import BoundLike
from tableformat.write.rows.rows import as_reader

if TYPE_CHECKING:
    from tableformat.operations.merging.builder import Merge

_RANGES_NOTE: Final = (
    "The rows were checked against the range partitions that existed when this transaction loaded the table. A new "
    "transaction uses the current ones."
)


@checked_methods
class Transaction:
    """Operations on a table, staged in order and committed together at the end of the `with` block.

    A delete also removes rows that the same transaction added before it, never rows added after it. Operations that
    read see the rows and deletes of the transaction.

    >>> with table.transaction(application_id="loader", batch_id=1) as tx:
    ...     tx.append(pa.table({"id1": ["C", "C"], "id2": [1, 2], "num_cal": [1, 1]}))
    ...     tx.delete_prefix({"id1": "C", "id2": 1})
    ...     tx.append(pa.table({"id1": ["C"], "id2": [1], "num_cal": [9]}))
    >>> table.scan(where="id1 = 'C'", columns=["id2", "num_cal"]).to_arrow().sort_by("id2").to_pydict()
    {'id2': [1, 2], 'num_cal': [9, 1]}
    """

    def __init__(self, draft: Draft, options: CommitOptions) -> None:
        self._draft = draft
        self._options = options
        draft.keep_unchanged(options.if_unchanged_since)
        draft.ranges_note = _RANGES_NOTE
        self._started = time.perf_counter()
        self._is_applied = draft.is_applied(options)
        self._is_used = False
        self._is_part = False
        self._result: CommitResult | None = None

    def __repr__(self) -> str:
        state = "committed at the end of the block" if self._result is None else "ended"
        return f"Transaction({self._draft.name!r}, branch={self._draft.branch!r}): {state}"

    @property
    def result(self) -> CommitResult:
        """The result of the commit. Raises InvalidArgumentError before the end of the block.

        >>> with table.transaction() as tx:
        ...     tx.append(pa.table({"id1": ["C"], "id2": [1], "num_cal": [1]}))
        >>> tx.result.added_row_count
        1
        """
        if self._result is None:
            raise InvalidArgumentError(
                "the result of a transaction is available only after its `with` block has ended."
            )
        return self._result

    def commit(self) -> CommitResult:
        """Commit the staged changes. `Table.transaction()` calls this at the end of the block. Raises
        InvalidArgumentError in a transaction over several tables, which commits them together."""
        if self._is_part:
            raise InvalidArgumentError(
                f"{self._draft.name} is committed with the other tables of the transaction, at the end of the block. "
                "Nothing was changed. Remove the call of commit()."
            )
        if self._is_applied:
            self._result = self._draft.unchanged(already_applied=True, started=self._started)
        else:
            self._result = self._draft.commit(self._options, started=self._started)
        return self._result

    def append(self, rows: RowsLike, *, on_duplicate: str = "allow", on_refused: str = "fail") -> None:
        """See `Table.append`."""
        if self._is_open():
            append(self._draft, rows=rows, on_duplicate=on_duplicate, on_refused=on_refused)

    def delete(self, where: Where, *, mode: str = "auto") -> None:
        """See `Table.delete`."""
        if self._is_open():
            delete(self._draft, where=where, mode=mode)

    def delete_prefix(self, prefix: Mapping[str, Any] | Any, *, mode: str = "auto") -> None:
        """See `Table.delete_prefix`."""
        if self._is_open():
            delete_prefix(self._draft, prefix=prefix, mode=mode)

    def delete_range(
        self,
        *,
        lower: Sequence[Any] | None = None,
        upper: Sequence[Any] | None = None,
        on: Sequence[str] | None = None,
        mode: str = "auto",
        everything: bool = False,
    ) -> None:
        """See `Table.delete_range`."""
        if self._is_open():
            delete_range(self._draft, lower=lower, upper=upper, on=on, mode=mode, everything=everything)

    def delete_ranges(self, ranges: Any, *, mode: str = "auto") -> None:
        """See `Table.delete_ranges`."""
        if self._is_open():
            delete_ranges(self._draft, ranges=ranges, mode=mode)

    def delete_rows(self, keys: RowsLike) -> None:
        """See `Table.delete_rows`."""
        if self._is_open():
            delete_rows(self._draft, keys=keys)

    def replace(
        self,
        rows: RowsLike,
        *,
        prefix: Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        cover: Any = None,
        on_refused: str = "fail",
        on_stale: str = "ignore",
    ) -> None:
        """See `Table.replace`."""
        if self._is_open():
            replace(
                self._draft,
                rows=rows,
                prefix=prefix,
                order_by=order_by,
                cover=cover,
                on_refused=on_refused,
                on_stale=on_stale,
            )

    def replace_interval(
        self,
        rows: RowsLike,
        *,
        on: str | Sequence[str],
        lower: Any,
        upper: Any,
        everything: bool = False,
        blind: bool = False,
        on_refused: str = "fail",
    ) -> None:
        """See `Table.replace_interval`."""
        del blind
        if self._is_open():
            replace_interval(
                self._draft,
                rows=rows,
                on=on,
                lower=lower,
                upper=upper,
                everything=everything,
                blind=True,  # RP-19: it must reach rows that earlier operations staged
                on_refused=on_refused,
            )

    def replace_partition(self, rows: RowsLike, partition: str | BoundLike, *, on_refused: str = "fail") -> None:
        """See `Table.replace_partition`."""
        if self._is_open():
            replace_partition(self._draft, rows=rows, partition=partition, blind=True, on_refused=on_refused)

    def upsert(
        self,
        rows: RowsLike,
        *,
        order_by: str | Sequence[str] | None = None,
        missing: str = "error",
        on_refused: str = "fail",
        on_stale: str = "ignore",
    ) -> None:
        """See `Table.upsert`."""
        if self._is_open():
            upsert(self._draft, rows=rows, order_by=order_by, on_refused=on_refused, missing=missing, on_stale=on_stale)

    def update(self, where: Where, *, set: Mapping[str, Any]) -> None:
        """See `Table.update`."""
        from tableformat.operations.verbs.update import update

        if self._is_open():
            update(self._draft, where=where, set=set)

    def merge(
        self, source: RowsLike, *, on: str | Sequence[str], source_alias: str = "source", target_alias: str = "target"
    ) -> Merge[None]:
        """See `Table.merge`."""
        from tableformat.operations.merging.builder import Merge
        from tableformat.operations.verbs.merge import merge

        held = as_reader(source).read_all() if is_one_shot(source) else source

        def run(statement: MergeStatement, dry_run: bool) -> None:
            if dry_run:
                raise InvalidArgumentError(
                    "a transaction does not support dry runs; use table.merge(...).execute(dry_run=True)."
                )
            if self._is_open():
                merge(self._draft, source=held, statement=statement)

        on = on if isinstance(on, str) else tuple(on)
        return Merge(MergeStatement(on=on, source_alias=source_alias, target_alias=target_alias), run)

    def apply_changes(
        self,
        changes: Any,
        *,
        op: str = "_op",
        order_by: str | Sequence[str] | None = "_ts",
        envelope: str | None = None,
        key: str | None = "table",
        on_refused: str = "fail",
        missing: str = "error",
        on_stale: str = "ignore",
    ) -> None:
        """See `Table.apply_changes`."""
        if self._is_open():
            apply_changes(
                self._draft,
                changes=changes,
                op=op,
                order_by=order_by,
                envelope=envelope,
                key=key,
                on_refused=on_refused,
                missing=missing,
                on_stale=on_stale,
            )

    def overwrite(
        self,
        rows: RowsLike,
        *,
        where: Where | None = None,
        allow_outside: bool = False,
        on_refused: str = "fail",
    ) -> None:
        """See `Table.overwrite`."""
        if self._is_open():
            overwrite(self._draft, rows=rows, where=where, allow_outside=allow_outside, on_refused=on_refused)

    def _is_open(self) -> bool:
        """Whether operations are staged. They are not if the batch was committed before."""
        if self._result is not None:
            raise InvalidArgumentError("the transaction has ended; start another one.")
        self._is_used = True
        return not self._is_applied


class TransactionPart:
    """A transaction on one table that is committed together with those on others."""

    def __init__(self, draft: Draft, options: CommitOptions) -> None:
        self.transaction = Transaction(draft, options)
        self.transaction._is_part = True
        self._draft = draft
        self._options = options

    @property
    def is_used(self) -> bool:
        """Whether an operation was called."""
        return self.transaction._is_used

    @property
    def is_applied(self) -> bool:
        """Whether the table had the batch before, so that operations stage nothing."""
        return self.transaction._is_applied

    def commit_alone(self) -> None:
        """Commit this table, which is the only one."""
        self.transaction._is_part = False
        self.transaction.commit()

    def pending(self) -> PendingCommit:
        """The staged change, for the commit; `end` follows."""
        return replace_fields(self._draft.pending(self._options), was_applied=self.is_applied)

    def end(self, pending: PendingCommit, outcome: CommitOutcome) -> None:
        """Set the result of the commit."""
        self.transaction._result = self._draft.conclude(pending, outcome, started=self.transaction._started)

    def end_without_commit(self) -> None:
        """Set the result of a transaction that changed nothing, unless there is one."""
        if self.transaction._result is None:
            self.transaction._result = self._draft.unchanged(
                already_applied=self.is_applied, started=self.transaction._started
            )

    def discard(self) -> None:
        """Remove the files that were staged."""
        self._draft.discard()
