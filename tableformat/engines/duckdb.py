"""DuckDB: a whole catalog as an attached database.

    con = duckdb.connect()
    tableformat.duckdb.attach(con, catalog, name="lake")
    con.sql("SELECT count(*) FROM lake.db.calendars")

Each table is a registered dataset with a view over it, so DuckDB pushes columns and filters into the scan. Everything
stays at the snapshots of `attach`, so that a query with a self-join sees one snapshot, until `refresh`. Namespaces
become schemas (`a.b` is the schema "a.b"), and the range partitions of a table `t` are `"t$range_partitions"`. A table
that cannot be read has a view that says why. A cursor is a connection of its own and needs its own `attach`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from pyiceberg.exceptions import NotInstalledError, RESTError, ValidationError

from tableformat.engines.listed_partitions import ListedPartitions
from tableformat.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    TableFormatError,
    TableNotFoundError,
    nearest_hint,
)
from tableformat.metadata.identifiers import identifier_parts, identifier_text
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.scan.scan import Scan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyarrow.dataset import Dataset as ArrowDataset

    from tableformat.catalogs.catalog import Catalog
    from tableformat.metadata.snapshot_view import SnapshotView


_UNREADABLE: Final = (TableFormatError, RESTError, ValidationError, NotInstalledError, OSError, ValueError)
"""What reading the metadata of a table raises, in whatever catalog it is."""


@dataclass(slots=True)
class _Attachment:
    catalog: Catalog
    snapshot_ids: dict[str, int | None] = field(default_factory=dict)
    """Table identifier to the snapshot that its view reads."""
    partition_lists: set[str] = field(default_factory=set)
    """Names of the views of range partitions."""


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
    for identifier in (*attached[name].snapshot_ids, *attached[name].partition_lists):
        connection.unregister(_dataset_name(name, identifier))
    del attached[name]
    connection.execute(f"DETACH {_quoted(name)}")


def _load(connection: DuckDBPyConnection, name: str, attachment: _Attachment) -> None:
    """LK-2: a table that cannot be read has a view that says why, and the others are attached."""
    catalog = attachment.catalog
    seen: dict[str, int | None] = {}
    taken: dict[tuple[str, str], str] = {}
    lists: dict[str, SnapshotView] = {}
    for namespace in catalog.list_namespaces(recursive=True):
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(name)}.{_quoted(namespace)}")
        for identifier in catalog.list_tables(namespace):
            place = (namespace.casefold(), identifier_parts(identifier)[-1].casefold())
            if place in taken:
                both = f"DuckDB does not tell the names {taken[place]} and {identifier} apart; rename one of the tables"
                _show_refusal(connection, _view_of(name, taken[place]), both)
                continue
            try:
                table = catalog.load_table(identifier)
                dataset = Scan(table.view).to_dataset()
            except TableNotFoundError:
                continue  # Dropped since it was listed.
            except _UNREADABLE as error:
                _show_refusal(connection, _view_of(name, identifier), f"{identifier} cannot be read: {error}")
                seen[identifier] = None
            else:
                seen[identifier] = table.snapshot_id
                _show_table(connection, name, identifier, dataset)
                if RANGE_PARTITIONS in table.metadata.properties:
                    lists[_list_of(identifier)] = table.view
            taken[place] = identifier
    for identifier in lists.keys() - seen.keys():
        _show_partitions(connection, name, identifier, lists[identifier])
    for identifier in (attachment.snapshot_ids.keys() | attachment.partition_lists) - seen.keys() - lists.keys():
        connection.execute(f"DROP VIEW IF EXISTS {_view_of(name, identifier)}")
        connection.unregister(_dataset_name(name, identifier))
    attachment.snapshot_ids = seen
    attachment.partition_lists = lists.keys() - seen.keys()


def _show_partitions(connection: DuckDBPyConnection, name: str, identifier: str, view: SnapshotView) -> None:
    """RP-27: the list of the snapshot that the table's view reads, made when it is asked for."""
    try:
        defined = range_partitions_of(view.metadata.properties, view.metadata.schema())
    except TableFormatError as error:
        _show_refusal(connection, _view_of(name, identifier), str(error))
    else:
        assert defined is not None, "the table has the property"
        _show_table(connection, name, identifier, ListedPartitions(view, defined))


def _list_of(identifier: str) -> str:
    *namespace, table = identifier_parts(identifier)
    return identifier_text((*namespace, f"{table}$range_partitions"))


def _show_table(connection: DuckDBPyConnection, name: str, identifier: str, dataset: ArrowDataset) -> None:
    """The view names the dataset by its full place, so that a table of the same name elsewhere cannot take it over."""
    registered = _dataset_name(name, identifier)
    connection.register(registered, dataset)
    connection.execute(
        f"CREATE OR REPLACE VIEW {_view_of(name, identifier)} AS SELECT * FROM temp.main.{_quoted(registered)}"
    )


def _show_refusal(connection: DuckDBPyConnection, view: str, why: str) -> None:
    """A view that is an error to read. The error is in the condition, which is evaluated for a count too."""
    text = why.replace("'", "''")
    connection.execute(
        f"CREATE OR REPLACE VIEW {view} AS SELECT '{text}' AS \"cannot be read\" WHERE error('{text}')::BOOLEAN"
    )


def _view_of(name: str, identifier: str) -> str:
    *namespace, table = identifier_parts(identifier)
    return f"{_quoted(name)}.{_quoted(identifier_text(namespace))}.{_quoted(table)}"


def _dataset_name(name: str, identifier: str) -> str:
    """A name for the registered dataset that no user would choose."""
    return "__tableformat_" + re.sub(r"\W", lambda match: f"_{ord(match.group()):x}_", f"{name}.{identifier}")


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
