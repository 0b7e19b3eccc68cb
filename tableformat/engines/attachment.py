"""The catalogs attached to a DuckDB connection, and the names of the datasets behind their views."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakKeyDictionary

from tableformat.metadata.identifiers import identifier_parts, identifier_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema

    from tableformat.table import Table


class CatalogHeads(Protocol):
    """All tables of a catalog at one moment."""

    def list_tables(self, namespace: str) -> list[str]:
        """Identifiers of the tables of a namespace."""

    def load(self, identifier: str) -> Table:
        """The table in its state of that moment."""


class AttachableCatalog(Protocol):
    """The part of `tableformat.Catalog` that an attachment uses."""

    def list_namespaces(self, *, recursive: bool) -> list[str]:
        """Dotted names of all namespaces."""

    def heads(self) -> CatalogHeads:
        """All tables at one moment."""

    def load_table(self, identifier: str, *, branch: str = ...) -> Table:
        """The table at its newest metadata."""


@dataclass(slots=True)
class Attachment:
    """A catalog that a connection shows as a database."""

    catalog: AttachableCatalog
    state: Mapping[str, Any]
    """Arguments of `Table.at` for every table; empty for the newest snapshots."""
    snapshot_ids: dict[str, int | None] = field(default_factory=dict)
    """Maps each table identifier to the snapshot that its view reads."""
    schemas: dict[str, Schema] = field(default_factory=dict)
    """Maps each table identifier to the columns of its view."""
    shown: dict[str, tuple[str, FileIO]] = field(default_factory=dict)
    """Maps each table identifier to the metadata file and the FileIO behind its view. If both are unchanged, the view
    stays. A catalog that gives out credentials returns a new FileIO each time."""
    partition_lists: set[str] = field(default_factory=set)
    """Names of the views of range partitions."""
    past_states: set[str] = field(default_factory=set)
    """Registered datasets of other snapshots, for `AT` clauses."""

    def load(self, identifier: str) -> Table:
        """The current table, at the branch that the connection shows."""
        branch = self.state.get("branch")
        return self.catalog.load_table(identifier, **({} if branch is None else {"branch": branch}))


attachments: Final[WeakKeyDictionary[DuckDBPyConnection, dict[str, Attachment]]] = WeakKeyDictionary()
"""By connection, then by the name of the database."""


def attached_table(connection: DuckDBPyConnection, path: tuple[str, ...]) -> tuple[str, Table] | None:
    """The database and the newly loaded table for a name in SQL. The database may be omitted if `USE` selected it. None
    if the name is not a table of an attached catalog. Case does not matter, as in DuckDB."""
    attached = attachments.get(connection, {})
    ((database, schema),) = connection.execute("SELECT current_database(), current_schema()").fetchall()
    full = {1: (database, schema, *path), 2: (database, *path)}.get(len(path), path)
    name_of = {each.casefold(): each for each in attached}
    if len(full) != 3 or full[0].casefold() not in name_of:
        return None
    database = name_of[full[0].casefold()]
    for identifier in attached[database].snapshot_ids:
        *namespace, name = identifier_parts(identifier)
        if (identifier_text(namespace).casefold(), name.casefold()) == (full[1].casefold(), full[2].casefold()):
            return database, attached[database].load(identifier)
    return None


def is_attached(connection: DuckDBPyConnection, path: tuple[str, ...]) -> bool:
    """Whether a table created under this name would be in a database that is an attached catalog."""
    attached = {each.casefold() for each in attachments.get(connection, {})}
    rows = connection.execute("SELECT database_name, database_name = current_database() FROM duckdb_databases()")
    current = {name.casefold(): is_current for name, is_current in rows.fetchall()}
    if len(path) > 1 and path[0].casefold() in current:
        return path[0].casefold() in attached
    return any(is_current and name in attached for name, is_current in current.items())


def dataset_name(name: str, identifier: str) -> str:
    """A name for the registered dataset that no user would choose."""
    return "__tableformat_" + re.sub(r"\W", lambda match: f"_{ord(match.group()):x}_", f"{name}.{identifier}")


def quoted(identifier: str) -> str:
    """The name in double quotes."""
    return '"' + identifier.replace('"', '""') + '"'
