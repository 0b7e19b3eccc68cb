"""Sends the commits of a client to the catalog: all of them or none, for one table or several."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.typedef import Identifier

from tableformat.commit.multi_table_commit import TableRequest, commit_several_tables
from tableformat.commit.retry import retry_lost_races
from tableformat.server.client_commits import catalog_commit, check_requirements, for_catalog


class _UnmetError(Exception):
    """A requirement of the client does not hold, so that another attempt cannot help."""

    def __init__(self, reason: CommitFailedException) -> None:
        super().__init__(str(reason))
        self.reason = reason


def send_commits(catalog: IcebergCatalog, commits: Sequence[tuple[Identifier, CommitTableRequest]]) -> None:
    """Commit the changes of a client. A lost race is retried by the properties of the tables, in the queue of their
    writers, as long as the requirements hold (SV-9).

    Raises CommitFailedException if a requirement does not hold, and SeveralTablesError if the catalog commits one table
    at a time.
    """

    def attempt() -> None:
        try:
            requests = [_request(catalog.load_table(identifier), commit) for identifier, commit in commits]
        except CommitFailedException as reason:
            raise _UnmetError(reason) from reason
        commit_several_tables(catalog, requests)

    try:
        retry_lost_races(attempt, *(catalog.load_table(identifier) for identifier, _ in commits))
    except _UnmetError as unmet:
        raise unmet.reason from unmet


def _request(table: Table, commit: CommitTableRequest) -> TableRequest:
    requirements, updates = catalog_commit(table.metadata, commit.requirements, commit.updates)
    check_requirements(table.metadata, requirements)
    return TableRequest(table, for_catalog(table, requirements), updates)
