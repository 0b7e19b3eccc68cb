"""`CatalogTransaction`: operations on several tables, committed together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.refs import MAIN_BRANCH

from tableformat.arguments import checked_methods
from tableformat.commit.commit_status import CommitStatus, removing_on_failure
from tableformat.commit.idempotence import batch_name
from tableformat.commit.multi_table_commit import check_commits_several_tables
from tableformat.commit.transaction import commit_changes
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.identifiers import identifier_parts, identifier_text
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.result import CommitResult
from tableformat.operations.transaction import Transaction, TransactionPart

Load = Callable[[tuple[str, ...]], IcebergTable]
"""(identifier) -> the current table of the catalog."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One table of a transaction."""

    iceberg: IcebergTable
    branch: str
    part: TransactionPart


@checked_methods
class CatalogTransaction:
    """The tables of one transaction, see `Catalog.transaction`.

    >>> notes = catalog.create_table("db.notes", pa.schema([("id1", pa.string()), ("note", pa.string())]), key=["id1"])
    >>> with catalog.transaction() as tx:
    ...     tx.table("db.calendars").delete_prefix({"id1": "A"})
    ...     tx.table("db.notes").upsert(pa.table({"id1": ["A"], "note": ["closed"]}))
    >>> sorted(tx.results)
    ['db.calendars', 'db.notes']
    """

    def __init__(self, catalog: IcebergCatalog, load: Load, options: CommitOptions) -> None:
        """CP-83: raises InvalidArgumentError for `if_unchanged_since`."""
        if options.if_unchanged_since is not None:
            raise InvalidArgumentError(
                f"if_unchanged_since={options.if_unchanged_since} refers to a snapshot of one table, but this "
                "transaction may change several tables. Nothing was changed. Use the option in a transaction of one "
                "table: table.transaction(if_unchanged_since=...)."
            )
        self._catalog = catalog
        self._load = load
        self._options = options
        self._status = CommitStatus()
        self._members: dict[tuple[str, ...], _Member] = {}
        self._results: dict[str, CommitResult] | None = None

    def __repr__(self) -> str:
        state = "committed at the end of the block" if self._results is None else "ended"
        return f"CatalogTransaction({', '.join(map(identifier_text, self._members))}): {state}"

    def table(self, name: str | tuple[str, ...], *, branch: str = MAIN_BRANCH) -> Transaction:
        """The transaction of one table, whose operations are staged until the end of the block. Each call for a table
        returns the same one.

        Raises SeveralTablesError for a second table in a catalog that commits one table at a time, TableNotFoundError,
        and InvalidArgumentError for a second branch of a table.

        >>> with catalog.transaction() as tx:
        ...     tx.table("db.calendars").append(pa.table({"id1": ["C"], "id2": [1], "num_cal": [1]}))
        >>> table.refresh().scan().count()
        4
        """
        if self._results is not None:
            raise InvalidArgumentError("the transaction has ended; start another one.")
        parts = identifier_parts(name)
        known = self._members.get(parts)
        if known is None:
            known = self._members[parts] = self._joined(parts, branch)
        if known.branch != branch:
            raise InvalidArgumentError(
                f"{identifier_text(parts)} is already in the transaction on branch {known.branch!r} and cannot also "
                f"be changed on branch {branch!r}. Use one transaction for each branch."
            )
        return known.part.transaction

    @property
    def results(self) -> dict[str, CommitResult]:
        """The result of each table, by its name. Raises InvalidArgumentError before the end of the block.

        >>> with catalog.transaction(application_id="loader", batch_id=1) as tx:
        ...     tx.table("db.calendars").delete_prefix({"id1": "A"})
        >>> tx.results["db.calendars"].already_applied
        False
        """
        if self._results is None:
            raise InvalidArgumentError(
                "the results of a transaction are available only after its `with` block has ended."
            )
        return dict(self._results)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Commit at the end of the block. `Catalog.transaction` calls this. If the commit fails, the files of all
        tables are removed, unless it may have been applied."""
        with removing_on_failure(self._status, self._discard):
            yield
            self._results = self._committed()

    def changed_tables(self) -> Iterator[tuple[IcebergTable, str]]:
        """Each table with a new snapshot, and its branch."""
        for parts, member in self._members.items():
            if self.results[identifier_text(parts)].attempts:
                yield member.iceberg, member.branch

    def _joined(self, parts: tuple[str, ...], branch: str) -> _Member:
        if self._members:
            check_commits_several_tables(self._catalog)
        iceberg = self._load(parts)
        return _Member(iceberg, branch, TransactionPart(Draft(iceberg, branch, status=self._status), self._options))

    def _committed(self) -> dict[str, CommitResult]:
        """CP-74, ST-10: the results by table. Tables without any operation are not part of the commit."""
        used = [each.part for each in self._members.values() if each.part.is_used]
        if len(used) == 1:
            used[0].commit_alone()
        elif not all(each.is_applied for each in used):
            self._commit_together(used)
        for member in self._members.values():
            member.part.end_without_commit()
        return {identifier_text(parts): each.part.transaction.result for parts, each in self._members.items()}

    def _commit_together(self, used: list[TransactionPart]) -> None:
        pending = [each.pending() for each in used]
        batch = batch_name(self._options.application_id, self._options.batch_id)
        outcomes = commit_changes(pending, batch=batch, status=self._status)
        for part, staged, outcome in zip(used, pending, outcomes, strict=True):
            part.end(staged, outcome)

    def _discard(self) -> None:
        for member in self._members.values():
            member.part.discard()
