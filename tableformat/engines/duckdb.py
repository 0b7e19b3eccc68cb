"""DuckDB: a whole catalog as an attached database.

    con = duckdb.connect()
    tableformat.duckdb.attach(con, catalog, name="lake")
    con.sql("SELECT count(*) FROM lake.db.calendars")

Each table is a registered dataset with a view over it, so DuckDB pushes columns and filters into the scan. Everything
stays at the snapshots of `attach`, so that a query with a self-join sees one snapshot, until `refresh`. Namespaces
become schemas (`a.b` is the schema "a.b"). A cursor is a connection of its own and needs its own `attach`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tableformat.errors import AlreadyExistsError, InvalidArgumentError, nearest_hint
from tableformat.scan.scan import Scan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tableformat.catalogs.catalog import Catalog


@dataclass(slots=True)
class _Attachment:
    catalog: Catalog
    snapshot_ids: dict[str, int | None] = field(default_factory=dict)
    """Table identifier to the snapshot that its view reads."""


_attachments: WeakKeyDictionary[DuckDBPyConnection, dict[str, _Attachment]] = WeakKeyDictionary()


def attach(connection: DuckDBPyConnection, catalog: Catalog, *, name: str = "lake") -> None:
    """Make every table of the catalog readable as `<name>.<namespace>.<table>`; of a namespace in a namespace it is the
    schema `"outer.inner"`.

    Raises AlreadyExistsError when the connection has a database of that name.

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> tf.duckdb.attach(connection, catalog)
    >>> connection.sql("SELECT id1, count(*) FROM lake.db.calendars GROUP BY id1 ORDER BY id1").fetchall()
    [('A', 2), ('B', 1)]
    """
    if not name:
        raise InvalidArgumentError("attach needs a name for the catalog, such as 'lake'.")
    names = [row[0] for row in connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()]
    if name in names:
        raise AlreadyExistsError(f"the connection has a database {name!r} already; attach under another name.")
    connection.execute(f"ATTACH ':memory:' AS {_quoted(name)}")
    attached = _attachments.setdefault(connection, {})
    attached[name] = _Attachment(catalog)
    _load(connection, name, attached[name])


def refresh(connection: DuckDBPyConnection, *, name: str | None = None) -> dict[str, int | None]:
    """Move the tables of one attached catalog, or of all, to their newest snapshots; new tables appear, dropped ones
    go.

    Returns each table that changed, as `<name>.<namespace>.<table>`, with the snapshot it reads now (None: it is gone).

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> tf.duckdb.attach(connection, catalog)
    >>> result = table.delete_prefix({"id1": "A"})
    >>> tf.duckdb.refresh(connection) == {"lake.db.calendars": table.snapshot_id}
    True
    """
    attached = _attachments.get(connection, {})
    if name is not None and name not in attached:
        raise InvalidArgumentError(f"no catalog is attached as {name!r}.{nearest_hint(name, attached)}")
    changed: dict[str, int | None] = {}
    for attached_name, attachment in attached.items():
        if name in (None, attached_name):
            before = dict(attachment.snapshot_ids)
            _load(connection, attached_name, attachment)
            changed.update(
                {
                    f"{attached_name}.{identifier}": attachment.snapshot_ids.get(identifier)
                    for identifier in before.keys() | attachment.snapshot_ids.keys()
                    if before.get(identifier, ...) != attachment.snapshot_ids.get(identifier, ...)
                }
            )
    return changed


def detach(connection: DuckDBPyConnection, *, name: str = "lake") -> None:
    """Forget an attached catalog.

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> tf.duckdb.attach(connection, catalog, name="lake")
    >>> tf.duckdb.detach(connection, name="lake")
    """
    attached = _attachments.get(connection, {})
    if name not in attached:
        raise InvalidArgumentError(f"no catalog is attached as {name!r}.{nearest_hint(name, attached)}")
    for identifier in attached[name].snapshot_ids:
        connection.unregister(_dataset_name(name, identifier))
    del attached[name]
    connection.execute(f"DETACH {_quoted(name)}")


def _load(connection: DuckDBPyConnection, name: str, attachment: _Attachment) -> None:
    catalog = attachment.catalog
    seen: dict[str, int | None] = {}
    for namespace in catalog.list_namespaces(recursive=True):
        schema = f"{_quoted(name)}.{_quoted(namespace)}"
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        for identifier in catalog.list_tables(namespace):
            table = catalog.load_table(identifier)
            seen[identifier] = table.snapshot_id
            # The view names the dataset by its full place, so that a table of the same name elsewhere cannot take it
            # over.
            dataset = _dataset_name(name, identifier)
            connection.register(dataset, Scan(table.view).to_dataset())
            view = f"{schema}.{_quoted(identifier.removeprefix(namespace + '.'))}"
            connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM temp.main.{_quoted(dataset)}")
    for identifier in attachment.snapshot_ids.keys() - seen.keys():
        namespace, _, table_name = identifier.rpartition(".")
        connection.execute(f"DROP VIEW IF EXISTS {_quoted(name)}.{_quoted(namespace)}.{_quoted(table_name)}")
        connection.unregister(_dataset_name(name, identifier))
    attachment.snapshot_ids = seen


def _dataset_name(name: str, identifier: str) -> str:
    """A name for the registered dataset that no user would choose."""
    return "__tableformat_" + re.sub(r"\W", lambda match: f"_{ord(match.group()):x}_", f"{name}.{identifier}")


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
