"""`INSERT INTO` and `DELETE FROM` tables of an attached catalog. DuckDB computes the rows, and an operation of `Table`
commits the change.

For DuckDB, every table is a view, and a Python client cannot make views accept rows. So the head of the statement is
parsed here, from DuckDB's tokens; the rest of it is a query or a condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from pyiceberg.expressions import AlwaysTrue

from tableformat.engines.attachment import attached_table, attachments, is_attached, quoted
from tableformat.engines.statement import QUERY_WORDS, StatementReader
from tableformat.engines.time_travel import with_past_states
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.filters.predicate import Where, parse_where
from tableformat.metadata.alike_names import refuse_alike_columns
from tableformat.operations.staging.result import CommitResult

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from tableformat.table import Table


@dataclass(frozen=True, slots=True)
class SqlChange:
    """The change that a statement would make in an attached catalog."""

    verb: str
    name: str
    """As written in the statement."""


def change_of(connection: DuckDBPyConnection, sql: str) -> SqlChange | None:
    """The change that the statement would make in an attached catalog, including new tables. None for a query, and for
    a statement about anything else. Creating a view only affects the connection, so it is not a change."""
    read = StatementReader(sql)
    verb = next((words for words in _CHANGES if read.took(*words)), None)
    if verb is None:
        return None
    for words in (("IF", "NOT", "EXISTS"), ("IF", "EXISTS")):
        read.took(*words)
    if not read.is_name():
        return None
    path = read.path()
    is_ours = is_attached(connection, path) if verb[0] == "CREATE" else attached_table(connection, path) is not None
    return SqlChange(" ".join(verb), ".".join(path)) if is_ours else None


_CHANGES: Final = (
    *(("CREATE", *way, "TABLE") for way in ((), ("OR", "REPLACE"))),
    *(("INSERT", *way, "INTO") for way in ((), ("OR", "REPLACE"), ("OR", "IGNORE"))),
    ("UPDATE",),
    ("DELETE", "FROM"),
    ("TRUNCATE", "TABLE"),
    ("TRUNCATE",),
    ("MERGE", "INTO"),
    *((verb, kind) for verb in ("DROP", "ALTER") for kind in ("TABLE", "VIEW")),
)


def refuse_change(connection: DuckDBPyConnection, sql: str) -> None:
    """Raises UnsupportedFeatureError for a statement about tables of an attached catalog that DuckDB would reject, or
    would run in its memory only, so that the catalog does not get the change."""
    changed = change_of(connection, sql)
    if changed is None:
        return
    raise UnsupportedFeatureError(
        f"{changed.verb} {changed.name} is not supported on an attached catalog, which DuckDB accesses through "
        f"views: {_INSTEAD[changed.verb.partition(' ')[0]]}"
    )


_INSTEAD: Final = {
    "CREATE": "use catalog.create_table() to create a table and INSERT INTO to fill it.",
    "INSERT": "use INSERT INTO or INSERT OR REPLACE INTO.",
    "UPDATE": "use table.update(where, set={...}) to change rows.",
    "DELETE": "use DELETE FROM table WHERE condition.",
    "TRUNCATE": "use DELETE FROM without WHERE to delete all rows.",
    "MERGE": "use table.merge(source, on=...) to change, delete and insert rows.",
    "DROP": "use catalog.drop_table() to drop a table.",
    "ALTER": "use table.update_schema() to change columns, catalog.rename_table() to change the name.",
}


def insert(connection: DuckDBPyConnection, sql: str) -> CommitResult | None:
    """Append the rows of the statement's query; with `OR REPLACE`, upsert them. None if the table is not in an attached
    catalog."""
    read = StatementReader(sql)
    conflict = "" if not read.took("INSERT", "OR") else read.identifier().upper()
    if not read.took("INTO") and not read.took("INSERT", "INTO"):
        return None  # WITH ... INSERT, whose table DuckDB names in its error.
    target = _target(connection, read)
    if target is None:
        return None
    place, table = target
    if conflict not in ("", "REPLACE"):
        raise UnsupportedFeatureError(
            f"INSERT OR {conflict} into {table.name} is not supported. INSERT appends, INSERT OR REPLACE upserts. "
            "For other rules, use table.merge() in Python."
        )
    if read.took("AS"):
        read.identifier()
    columns = _column_list(read)
    by_name = read.took("BY", "NAME")
    if not by_name:
        read.took("BY", "POSITION")
    if read.next() not in QUERY_WORDS:
        raise UnsupportedFeatureError(
            f"{read.rest()!r} is not a query: rows must come from SELECT, FROM, WITH or VALUES."
        )
    rows = connection.sql(with_past_states(connection, read.rest()))
    fitting = _with_types_of(connection.sql(f"FROM {place}"), rows, columns, by_name=by_name, name=table.name)
    reader = fitting.to_arrow_reader()
    return table.upsert(reader) if conflict else table.append(reader)


def delete(connection: DuckDBPyConnection, sql: str) -> CommitResult | None:
    """Run `Table.delete` with the condition of the statement. None if the table is not in an attached catalog."""
    read = StatementReader(sql)
    if not read.took("DELETE", "FROM"):
        return None
    target = _target(connection, read)
    if target is None:
        return None
    table = target[1]
    where: Where = AlwaysTrue()
    if read.took("WHERE"):
        where = parse_where(read.rest(), table.metadata.schema(), local_time=partial(_moment_of, connection))
    elif read.next() not in ("", ";"):
        raise UnsupportedFeatureError(
            f"DELETE FROM {table.name} {read.rest()!r} is not supported. Use DELETE FROM table WHERE condition, or "
            "table.merge() in Python to delete the rows that a query returns."
        )
    return table.delete(where)


def _target(connection: DuckDBPyConnection, read: StatementReader) -> tuple[str, Table] | None:
    """The table behind the name that comes next, at the branch that the connection shows, with the SQL name of its
    view."""
    path = read.path()
    found = attached_table(connection, path)
    if found is None:
        return None
    database, table = found
    state = attachments[connection][database].state
    if past := [f"{kind}={value!r}" for kind, value in state.items() if kind != "branch"]:
        raise UnsupportedFeatureError(
            f"{table.name}: {database} is attached at {past[0]}, and earlier states cannot be changed. Attach the "
            "catalog without it, or at a branch."
        )
    # A SELECT with the same condition is rejected too.
    refuse_alike_columns(table.schema, what=table.name)
    return ".".join(map(quoted, path)), table


def _moment_of(connection: DuckDBPyConnection, local: datetime) -> datetime:
    """The moment of a time without an offset, in the connection's time zone, as DuckDB interprets it."""
    text = local.isoformat(sep=" ")
    ((micros,),) = connection.execute("SELECT epoch_us(CAST(? AS TIMESTAMPTZ))", [text]).fetchall()
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)


def _column_list(read: StatementReader) -> list[str] | None:
    """Parse `(a, b)`; None if the statement has no such list."""
    if read.next() != "(" or read.after_next() in QUERY_WORDS:
        return None
    read.took("(")
    columns = [read.identifier()]
    while read.took(","):
        columns.append(read.identifier())
    if not read.took(")"):
        raise UnsupportedFeatureError("INSERT requires whole columns: a list of names in parentheses.")
    return columns


def _with_types_of(
    target: DuckDBPyRelation, rows: DuckDBPyRelation, columns: Sequence[str] | None, *, by_name: bool, name: str
) -> DuckDBPyRelation:
    """The rows with the names and types of their target columns, cast by DuckDB as for its own tables."""
    types = {column.casefold(): (column, kind) for column, kind in zip(target.columns, target.types, strict=True)}
    wanted = rows.columns if by_name else columns or target.columns
    if len(wanted) != len(rows.columns):
        raise InvalidArgumentError(
            f"INSERT INTO {name}: the query returns {len(rows.columns)} columns for {', '.join(wanted)}."
        )
    unknown = [column for column in wanted if column.casefold() not in types]
    if unknown:
        raise InvalidArgumentError(f"INSERT INTO {name}: column {', '.join(unknown)} does not exist.")
    places = [f"c{place}" for place in range(len(wanted))]
    casts = []
    for column, place in zip(wanted, places, strict=True):
        known, kind = types[column.casefold()]
        casts.append(f"CAST({place} AS {kind}) AS {quoted(known)}")
    named = rows.project(", ".join(f"#{number + 1} AS {place}" for number, place in enumerate(places)))
    return named.project(", ".join(casts))
