"""`head`, `query` and `explain`: rows, SQL, and the reasons for reading files."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tableformat.cli.options import (
    AsOfOption,
    BranchOption,
    ColumnsOption,
    SnapshotOption,
    TableArgument,
    TagOption,
    WhereOption,
    names_of,
)
from tableformat.cli.output import Output
from tableformat.cli.row_output import TEXT_ROWS, Taken, iceberg_type, print_rows
from tableformat.cli.session import Session, local_ms, view_of
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_BATCH_ROWS: Final = 10_000
_PLAN_COLUMNS: Final = ["explain_key", "explain_value"]
"""The columns of DuckDB's answer to EXPLAIN: a drawing of several lines, which is printed unchanged."""


class QueryFailedError(InvalidArgumentError):
    """DuckDB could not run the SQL text."""


def head(
    context: typer.Context,
    table: TableArgument,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Number of rows.")] = 10,
    where: WhereOption = None,
    columns: ColumnsOption = None,
    snapshot: SnapshotOption = None,
    as_of: AsOfOption = None,
    tag: TagOption = None,
    branch: BranchOption = None,
) -> None:
    """Print some rows of a table, with all deletes applied."""
    from tableformat.scan.scan import Scan

    session = Session.of(context)
    handle = session.table(table, branch)
    view = view_of(handle, snapshot_id=snapshot, as_of=as_of, tag=tag, branch=branch)
    scan = Scan(view, where, names_of(columns), limit=limit)
    types = [iceberg_type(field, view.schema) for field in scan.schema]
    with scan.to_batches() as batches:
        print_rows(session.output, Taken(batches, None), scan.schema.names, types)


def query(
    context: typer.Context,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="DuckDB SQL; tables are db.t, or lake.db.t.")],
    *,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=0, help=f"Print at most this many rows [{TEXT_ROWS} as text, all as JSON]."),
    ] = None,
    snapshot: SnapshotOption = None,
    as_of: AsOfOption = None,
    tag: TagOption = None,
    branch: BranchOption = None,
) -> None:
    """Run SQL over all tables of the catalog with DuckDB.

    To read one table at another state, write "FROM db.t AT (VERSION => 8423)", with a snapshot id or the quoted name of
    a tag or branch, or "AT (TIMESTAMP => '2026-01-31')". The options for time travel apply to all tables.
    """
    import duckdb

    from tableformat.engines.duckdb import attach_as_default
    from tableformat.storage.duckdb_connection import duckdb_connection

    session = Session.of(context)
    wanted = limit if limit is not None or session.output.is_json else TEXT_ROWS
    state = {
        "snapshot_id": snapshot,
        "as_of": None if as_of is None else local_ms(as_of),
        "tag": tag,
        "branch": branch,
    }
    with session.catalog() as catalog, duckdb_connection() as connection:
        attach_as_default(connection, catalog, **state)
        try:
            _run(connection, sql, session.output, wanted)
        except duckdb.Error as error:
            raise QueryFailedError(_one_line(error)) from error


def explain(
    context: typer.Context,
    table: TableArgument,
    *,
    where: WhereOption = None,
    columns: ColumnsOption = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Also read the rows, and print the time of each step.")
    ] = False,
    snapshot: SnapshotOption = None,
    as_of: AsOfOption = None,
    tag: TagOption = None,
    branch: BranchOption = None,
) -> None:
    """Explain which files a scan reads, which deletes apply to them, and why. Without --analyze, only metadata and
    range deletes are read."""
    from tableformat.display.explain import render_explanation
    from tableformat.display.summary import name_of
    from tableformat.scan.scan import Scan

    session = Session.of(context)
    handle = session.table(table, branch)
    view = view_of(handle, snapshot_id=snapshot, as_of=as_of, tag=tag, branch=branch)
    scan = Scan(view, where, names_of(columns))
    explanation = scan.explain(analyze=analyze)
    title = f"Scan of {name_of(handle)}" + (f" where {where}" if where else "")
    session.output.emit(
        lambda: {"table": name_of(handle), **explanation.to_dict(), "where": where, "columns": scan.schema.names},
        lambda: render_explanation(explanation, title=title, location=handle.location),
    )


def _run(connection: DuckDBPyConnection, sql: str, output: Output, limit: int | None) -> None:
    from tableformat.engines.listed_tables import with_listed_tables
    from tableformat.engines.time_travel import with_past_states

    for statement in connection.extract_statements(sql):
        _refuse_change(connection, statement.query)
    relation = connection.sql(with_past_states(connection, with_listed_tables(sql)))
    if relation is None:
        raise InvalidArgumentError("the SQL text has no statement.")
    names, types = _distinct(relation.columns), [str(column_type).strip('"') for column_type in relation.types]
    taken = Taken(relation.to_arrow_reader(_BATCH_ROWS), limit)
    if names == _PLAN_COLUMNS and not output.is_json:
        output.write(*(f"{line}\n" for batch in taken for line in batch.column(1).to_pylist()))
        return
    print_rows(output, taken, names, types)


def _refuse_change(connection: DuckDBPyConnection, sql: str) -> None:
    """Refuse statements that create or change tables of the catalog: DuckDB would do it in its memory only, and the
    result would be lost with the command."""
    from tableformat.engines import sql_changes

    changed = sql_changes.change_of(connection, sql)
    if changed is None:
        return
    raise UnsupportedFeatureError(
        f"{changed.verb} {changed.name}: `query` only reads tables of the catalog. Change them with `create`, "
        "`load`, `delete-prefix`, `delete-range` and `drop`; tableformat.duckdb.sql() in Python also runs INSERT and "
        "DELETE. CREATE TEMP TABLE creates a table for the following statements."
    )


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number if one occurs again: `a`, `a_1`."""
    taken: list[str] = []
    for name in names:
        candidates = (f"{name}_{number}" if number else name for number in itertools.count())
        taken.append(next(candidate for candidate in candidates if candidate not in taken))
    return taken


def _one_line(error: Exception) -> str:
    """DuckDB's message without the excerpt of the SQL text."""
    return " ".join(str(error).partition("\n\nLINE ")[0].split())
