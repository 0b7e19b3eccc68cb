"""`head`, `query` and `explain`: rows, SQL, and the reasons for reading files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tableformat.cli.cancellation import run_cancellable
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
from tableformat.cli.row_output import TEXT_ROWS, Taken, iceberg_type, limit_of, print_rows
from tableformat.cli.session import Session, local_ms, view_of
from tableformat.cli.sql_run import run_sql
from tableformat.errors import InvalidArgumentError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_STANDARD_INPUT: Final = "-"


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
    """Print some rows of a table, with all deletes applied.

    Example: tableformat head shop.orders --where "customer = 'ann'" --csv
    """
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
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help='DuckDB SQL; tables are db.t, or lake.db.t. "-" reads standard input.')
    ],
    *,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", min=0, help=f"Print at most this many rows [{TEXT_ROWS} as text, otherwise all]."
        ),
    ] = None,
    snapshot: SnapshotOption = None,
    as_of: AsOfOption = None,
    tag: TagOption = None,
    branch: BranchOption = None,
) -> None:
    """Run SQL over all tables of the catalog with DuckDB.

    To read one table at another state, write "FROM db.t AT (VERSION => 8423)", with a snapshot id or the quoted name of
    a tag or branch, or "AT (TIMESTAMP => '2026-01-31')". The options for time travel apply to all tables.

    Example: tableformat query "SELECT customer, count(*) FROM shop.orders GROUP BY ALL" --markdown
    """
    import duckdb

    from tableformat.engines.duckdb import attach_as_default
    from tableformat.storage.duckdb_connection import duckdb_connection

    session = Session.of(context)
    wanted = limit_of(session.output, limit)
    text = sys.stdin.read() if sql == _STANDARD_INPUT else sql
    state = {
        "snapshot_id": snapshot,
        "as_of": None if as_of is None else local_ms(as_of),
        "tag": tag,
        "branch": branch,
    }
    with session.catalog() as catalog, duckdb_connection() as connection:
        attach_as_default(connection, catalog, **state)
        try:
            run_cancellable(connection, lambda: _run(connection, text, session.output, wanted))
        except duckdb.Error as error:
            raise QueryFailedError(_told(error)) from error


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
    range deletes are read.

    Example: tableformat explain shop.orders --where "customer = 'ann'" --analyze
    """
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
    result = run_sql(connection, sql, limit)
    if result is None:
        raise InvalidArgumentError("the SQL text has no statement.")
    if result.is_plan and output.is_text:
        output.write(*result.plan_lines())
        return
    print_rows(output, result.rows, result.names, result.types)


def _told(error: Exception) -> str:
    """DuckDB's message, with the line of the SQL text and the pointer into it."""
    message, separator, excerpt = str(error).strip().partition("\n\nLINE ")
    return " ".join(message.split()) + (f"\n\nLINE {excerpt}" if separator else "")
