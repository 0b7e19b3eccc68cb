"""Commits to several tables at once, if the catalog supports it (LK-36)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pyiceberg.catalog import Catalog
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate

from tableformat.commit.rest_catalog import is_rest
from tableformat.errors import SeveralTablesError


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A request for one table. Without updates the catalog only checks the requirements."""

    table: Table
    """The table as loaded for the attempt."""
    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]


@runtime_checkable
class CommitsSeveralTables(Protocol):
    """A catalog that commits to several tables in one transaction of its database."""

    def commit_tables(self, requests: Sequence[TableRequest]) -> list[CommitTableResponse]:
        """Apply all requests or none; the answers are in the order of the requests. Raises CommitFailedException if
        nothing was applied."""


def check_commits_several_tables(catalog: Catalog) -> None:
    """LK-36: raise SeveralTablesError for a catalog that commits one table at a time."""
    if isinstance(catalog, CommitsSeveralTables):
        return
    if not is_rest(catalog):
        raise SeveralTablesError(
            catalog.name, kind=type(catalog).__name__, reason="a catalog of this type commits one table at a time"
        )
    from tableformat.commit.rest_transaction import OFFERED, is_offered

    if not is_offered(catalog):
        raise SeveralTablesError(
            catalog.name, kind=type(catalog).__name__, reason=f"its server does not list the endpoint {OFFERED}"
        )


def commit_several_tables(catalog: Catalog, requests: Sequence[TableRequest]) -> list[CommitTableResponse]:
    """Send the requests to the catalog of their tables; several requests are sent as one."""
    if len(requests) == 1:
        return [catalog.commit_table(requests[0].table, requests[0].requirements, requests[0].updates)]
    check_commits_several_tables(catalog)
    if isinstance(catalog, CommitsSeveralTables):
        return catalog.commit_tables(requests)
    assert is_rest(catalog), "other catalogs were rejected"
    from tableformat.commit.rest_transaction import commit_tables

    return commit_tables(catalog, requests)
