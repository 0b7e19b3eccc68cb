"""DuckDB: a whole catalog as an attached database.

    con = duckdb.connect()
    tableformat.duckdb.attach(con, catalog, name="lake")
    con.sql("SELECT count(*) FROM lake.db.calendars")

Each table is a registered dataset with a view over it, so DuckDB pushes columns and filters into the scan. Until
`refresh`, all tables stay at the snapshots of `attach`, so a query with a self-join sees one snapshot.

Namespaces become schemas (`a.b` is the schema "a.b"), and the range partitions of a table `t` are
`"t$range_partitions"`. A table that cannot be read has a view that raises the reason. A cursor is a separate connection
and needs its own `attach`. `sql` runs statements that DuckDB does not support for views: time travel, INSERT and
DELETE.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.exceptions import NotInstalledError, RESTError, ValidationError
from pyiceberg.table.refs import MAIN_BRANCH

from tableformat.arguments import shown
from tableformat.engines import sql_changes
from tableformat.engines.attachment import AttachableCatalog, Attachment, attachments, dataset_name, quoted
from tableformat.engines.listed_partitions import ListedPartitions
from tableformat.engines.time_travel import with_past_states
from tableformat.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    TableFormatError,
    TableNotFoundError,
    nearest_hint,
)
from tableformat.metadata.alike_names import folded
from tableformat.metadata.identifiers import identifier_parts, identifier_text
from tableformat.metadata.snapshot_choice import at_most_one
from tableformat.operations.staging.result import CommitResult
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.scan.duckdb_dataset import DuckDBDataset
from tableformat.scan.scan import Scan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from pyarrow.dataset import Dataset as ArrowDataset
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema

    from tableformat.metadata.snapshot_view import SnapshotView


_ALIASES: Final = ("lake", "tableformat", "tableformat_catalog")
"""Names for a catalog that is attached as the default. A namespace of the same name would hide it."""
_UNREADABLE: Final = (TableFormatError, RESTError, ValidationError, NotInstalledError, OSError, ValueError)
"""Errors of reading the metadata of a table, in any catalog."""


def attach(
    connection: DuckDBPyConnection,
    catalog: AttachableCatalog,
    *,
    name: str = "lake",
    snapshot_id: int | None = None,
    as_of: datetime | str | int | None = None,
    tag: str | None = None,
    branch: str | None = None,
) -> None:
    """Make every table of the catalog readable as `<name>.<namespace>.<table>`. For a nested namespace the schema is
    `"outer.inner"`.

    At most one of `snapshot_id`, `as_of`, `tag` and `branch` selects the state of every table. Reading a table without
    this state is an error. Raises AlreadyExistsError if the connection has a database of that name.

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> tf.duckdb.attach(connection, catalog)
    >>> connection.sql("SELECT id1, count(*) FROM lake.db.calendars GROUP BY id1 ORDER BY id1").fetchall()
    [('A', 2), ('B', 1)]
    """
    at_most_one(snapshot_id=snapshot_id, as_of=as_of, tag=tag, branch=branch)
    _check_attached(connection, catalog)
    if not name:
        raise InvalidArgumentError("attach needs a name for the catalog, such as 'lake'.")
    names = [row[0] for row in connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()]
    if name in names:
        raise AlreadyExistsError(f"the connection has a database {name!r} already; attach under another name.")
    connection.execute(f"ATTACH ':memory:' AS {quoted(name)}")
    attached = attachments.setdefault(connection, {})
    chosen = {"snapshot_id": snapshot_id, "as_of": as_of, "tag": tag, "branch": branch}
    attached[name] = Attachment(catalog, {kind: value for kind, value in chosen.items() if value is not None})
    try:
        _load(connection, name, attached[name])
    except BaseException:
        # A partly attached catalog would make every further statement of the connection fail.
        _take_back(connection, name)
        raise


def _take_back(connection: DuckDBPyConnection, name: str) -> None:
    """Undo an attachment that failed before all of its tables had views."""
    shown_yet = "SELECT view_name FROM duckdb_views() WHERE database_name = 'temp' AND starts_with(view_name, ?)"
    for (registered,) in connection.execute(shown_yet, [dataset_name(name, "")]).fetchall():
        connection.unregister(registered)
    del attachments[connection][name]
    connection.execute(f"DETACH {quoted(name)}")


def _check_attached(connection: object, catalog: object) -> None:
    """Raises InvalidArgumentError for a path instead of a catalog, and for exchanged arguments."""
    if not hasattr(catalog, "load_table") or not hasattr(catalog, "iceberg"):
        raise InvalidArgumentError(
            f"catalog must be a Catalog, not {shown(catalog)}: attach(connection, tableformat.open_catalog('lake/'))."
        )
    if not hasattr(connection, "extract_statements"):
        raise InvalidArgumentError(
            f"connection must be a DuckDB connection, such as duckdb.connect(), not {shown(connection)}."
        )


def refresh(connection: DuckDBPyConnection, *, name: str | None = None) -> dict[str, int | None]:
    """Move the tables of one attached catalog, or of all, to their newest snapshots. New tables appear, and dropped
    tables disappear.

    Returns each table with changed rows or columns, as `<name>.<namespace>.<table>`, with its new snapshot (None if the
    table was dropped or has no snapshot).

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> tf.duckdb.attach(connection, catalog)
    >>> result = table.delete_prefix({"id1": "A"})
    >>> tf.duckdb.refresh(connection) == {"lake.db.calendars": table.snapshot_id}
    True
    """
    attached = attachments.get(connection, {})
    if name is not None and name not in attached:
        raise InvalidArgumentError(f"no catalog is attached as {name!r}.{nearest_hint(name, attached)}")
    changed: dict[str, int | None] = {}
    for attached_name, attachment in attached.items():
        if name in (None, attached_name):
            before, columns = attachment.snapshot_ids, attachment.schemas
            _load(connection, attached_name, attachment)
            after = attachment.snapshot_ids
            changed.update(
                {
                    f"{attached_name}.{identifier}": after.get(identifier)
                    for identifier in before.keys() | after.keys()
                    if before.get(identifier, ...) != after.get(identifier, ...)
                    or columns.get(identifier) != attachment.schemas.get(identifier)
                }
            )
    return changed


def detach(connection: DuckDBPyConnection, *, name: str = "lake") -> None:
    """Detach an attached catalog.

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> tf.duckdb.attach(connection, catalog, name="lake")
    >>> tf.duckdb.detach(connection, name="lake")
    """
    attached = attachments.get(connection, {})
    if name not in attached:
        raise InvalidArgumentError(f"no catalog is attached as {name!r}.{nearest_hint(name, attached)}")
    for identifier in (*attached[name].snapshot_ids, *attached[name].partition_lists):
        connection.unregister(dataset_name(name, identifier))
    for registered in attached[name].past_states:
        connection.unregister(registered)
    del attached[name]
    connection.execute(f"DETACH {quoted(name)}")


def sql(connection: DuckDBPyConnection, text: str) -> DuckDBPyRelation | CommitResult | None:
    """Run one statement, including statements that DuckDB itself does not support for tables of an attached catalog:

    - `FROM db.t AT (VERSION => n)` reads a snapshot, and `AT (VERSION => 'name')` a tag or a branch. The snapshot that
      was current at a time is `AT (TIMESTAMP => t)`. A time without an offset is in the connection's time zone. Allowed
      in SELECT, and in the query of EXPLAIN, CREATE TABLE AS and INSERT.
    - `INSERT INTO db.t [(columns)] [BY NAME] query` appends, `INSERT OR REPLACE INTO` upserts.
    - `DELETE FROM db.t WHERE condition` is `Table.delete`, with the conditions that its `where` accepts. Times without
      an offset are in the connection's time zone, as in a SELECT.

    Changes are separate commits, independent of the connection's transaction, and are followed by `refresh`. They go to
    the branch at which the catalog is attached. A catalog that is attached at a past state cannot be changed. For
    tables of an attached catalog, UPDATE, MERGE, DROP, ALTER and CREATE TABLE raise UnsupportedFeatureError; use
    `Table.update` and `Table.merge` instead of UPDATE and MERGE. Every other statement is run by `connection.sql`,
    whose result is returned.

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> tf.duckdb.attach(connection, catalog)
    >>> before = table.snapshot_id
    >>> tf.duckdb.sql(connection, "INSERT INTO lake.db.calendars BY NAME SELECT 'C' AS id1, 7 AS id2, 1 AS num_cal")
    ... # doctest: +ELLIPSIS
    CommitResult(...)
    >>> tf.duckdb.sql(connection, "DELETE FROM lake.db.calendars WHERE id1 = 'A'").snapshot_id == before
    False
    >>> tf.duckdb.sql(connection, "SELECT id1 FROM lake.db.calendars ORDER BY id1").fetchall()
    [('B',), ('C',)]
    >>> tf.duckdb.sql(connection, f"SELECT count(*) FROM lake.db.calendars AT (VERSION => {before})").fetchall()
    [(3,)]
    """
    import duckdb

    statements = connection.extract_statements(text)
    if len(statements) != 1:
        raise InvalidArgumentError(f"only one statement can be run at a time, but the text has {len(statements)}.")
    (statement,) = statements
    changed = None
    if statement.type == duckdb.StatementType.INSERT:
        changed = sql_changes.insert(connection, statement.query)
    elif statement.type == duckdb.StatementType.DELETE:
        changed = sql_changes.delete(connection, statement.query)
    if changed is not None:
        refresh(connection)
        return changed
    sql_changes.refuse_change(connection, statement.query)
    relation: DuckDBPyRelation | None = connection.sql(with_past_states(connection, text))
    return relation


def sql_of_catalog(catalog: AttachableCatalog, text: str) -> DuckDBPyRelation | CommitResult | None:
    """Run `sql` on a new connection to which the catalog is attached, and in which `db.t` is a table of the catalog."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    attach_as_default(connection, catalog)
    return sql(connection, text)


def attach_as_default(connection: DuckDBPyConnection, catalog: AttachableCatalog, **state: Any) -> None:
    """Attach the catalog under a name that none of its namespaces has, and make it the default database, so that SQL
    finds `db.t` without the catalog's name. `state`: the arguments of `attach` that select a snapshot."""
    alias = next(name for name in _ALIASES if name not in catalog.list_namespaces(recursive=False))
    attach(connection, catalog, name=alias, **state)
    connection.execute(f"USE {alias}")


def _load(connection: DuckDBPyConnection, name: str, attachment: Attachment) -> None:
    """LK-2: a table that cannot be read gets a view that raises the reason, and the others are attached. CP-80: all
    tables of a lake are shown in their state of one moment."""
    import duckdb

    catalog = attachment.catalog
    seen: dict[str, int | None] = {}
    schemas: dict[str, Schema] = {}
    shown: dict[str, tuple[str, FileIO]] = {}
    taken: dict[tuple[str, str], str] = {}
    lists: dict[str, SnapshotView] = {}
    heads = catalog.heads()
    for namespace in catalog.list_namespaces(recursive=True):
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(name)}.{quoted(namespace)}")
        for identifier in heads.list_tables(namespace):
            place = _place_of(identifier)
            if place in taken:
                both = (
                    f"DuckDB does not distinguish the names {taken[place]} and {identifier}; rename one of the tables"
                )
                _show_refusal(connection, _view_of(name, taken[place]), both)
                shown.pop(taken[place], None)
                continue
            columns: list[str] = []
            try:
                table = heads.load(identifier)
                view = table.at(**attachment.state)
                columns = [field.name for field in view.schema.fields]
                behind = table.iceberg.metadata_location, table.iceberg.io
                is_same = _are_same(attachment.shown.get(identifier), behind)
                dataset = None if is_same else DuckDBDataset(Scan(view), marks_rows=True)
                if dataset is not None:
                    _show_table(connection, name, identifier, dataset)
            except TableNotFoundError:
                continue  # Dropped since it was listed.
            except duckdb.InterruptException:
                raise
            except (*_UNREADABLE, duckdb.Error) as error:
                told = f"{identifier} cannot be read: {error}"
                _show_refusal(connection, _view_of(name, identifier), told, columns)
                seen[identifier] = None
            else:
                seen[identifier] = None if view.snapshot is None else view.snapshot.snapshot_id
                schemas[identifier], shown[identifier] = view.schema, behind
                if RANGE_PARTITIONS in table.metadata.properties:
                    lists[_list_of(identifier)] = view
            taken[place] = identifier
    for identifier in lists.keys() - seen.keys():
        _show_partitions(connection, name, identifier, lists[identifier], attachment.state.get("branch") or MAIN_BRANCH)
    for identifier in (attachment.snapshot_ids.keys() | attachment.partition_lists) - seen.keys() - lists.keys():
        if _place_of(identifier) in taken:
            continue  # Another spelling of a name that is in use: DuckDB would take that one away.
        connection.execute(f"DROP VIEW IF EXISTS {_view_of(name, identifier)}")
        connection.unregister(dataset_name(name, identifier))
    attachment.snapshot_ids, attachment.schemas, attachment.shown = seen, schemas, shown
    attachment.partition_lists = lists.keys() - seen.keys()


def _place_of(identifier: str) -> tuple[str, str]:
    """The name as DuckDB compares it: case is ignored."""
    *namespace, table = identifier_parts(identifier)
    return identifier_text(namespace).casefold(), table.casefold()


def _are_same(shown: tuple[str, FileIO] | None, behind: tuple[str, FileIO]) -> bool:
    return shown is not None and shown[0] == behind[0] and shown[1] is behind[1]


def _show_partitions(
    connection: DuckDBPyConnection, name: str, identifier: str, view: SnapshotView, branch: str
) -> None:
    """RP-27: the range partitions of the snapshot that the table's view reads, listed on demand."""
    try:
        defined = range_partitions_of(view.metadata.properties, view.metadata.schema())
    except TableFormatError as error:
        _show_refusal(connection, _view_of(name, identifier), str(error))
    else:
        assert defined is not None, "the property exists"
        _show_table(connection, name, identifier, ListedPartitions(view, branch, defined))


def _list_of(identifier: str) -> str:
    *namespace, table = identifier_parts(identifier)
    return identifier_text((*namespace, f"{table}$range_partitions"))


def _show_table(connection: DuckDBPyConnection, name: str, identifier: str, dataset: ArrowDataset) -> None:
    """The view names the dataset with its full path, so that a table of the same name elsewhere cannot replace it."""
    registered = dataset_name(name, identifier)
    connection.register(registered, dataset)
    marker = dataset.marker if isinstance(dataset, DuckDBDataset) else None
    columns = "*" if marker is None else f"* EXCLUDE ({quoted(marker)})"
    connection.execute(
        f"CREATE OR REPLACE VIEW {_view_of(name, identifier)} AS SELECT {columns} FROM temp.main.{quoted(registered)}"
    )


def _show_refusal(connection: DuckDBPyConnection, view: str, why: str, columns: Iterable[str] = ()) -> None:
    """A view that raises an error when it is read, for any choice of columns. The error is in the condition, which is
    also evaluated for a count."""
    text = why.replace("'", "''")
    names = {folded(column): quoted(column) for column in ("cannot be read", *columns)}
    values = ", ".join(f"'{text}' AS {name}" for name in names.values())
    connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT {values} WHERE error('{text}')::BOOLEAN")


def _view_of(name: str, identifier: str) -> str:
    *namespace, table = identifier_parts(identifier)
    return f"{quoted(name)}.{quoted(identifier_text(namespace))}.{quoted(table)}"
