"""`changes` and `consumer`: the rows that snapshots deleted and added, and the named readers of these changes."""

from __future__ import annotations

from typing import Annotated

import typer

from tableformat.cli.options import (
    BranchOption,
    ColumnsOption,
    TableArgument,
    WhereOption,
    WritableTableArgument,
    names_of,
)
from tableformat.cli.row_output import TEXT_ROWS, Taken, iceberg_type, limit_of, print_rows
from tableformat.cli.session import Session, local_ms


def changes(
    context: typer.Context,
    table: TableArgument,
    *,
    from_snapshot: Annotated[
        int | None, typer.Option("--from", metavar="ID", help="Start after this snapshot (default: with the first).")
    ] = None,
    to_snapshot: Annotated[
        int | None, typer.Option("--to", metavar="ID", help="End with this snapshot (default: the newest).")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Only commits after this time: ISO 8601, local unless it has a zone."
        ),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only commits up to this time.")] = None,
    consumer: Annotated[
        str | None,
        typer.Option("--consumer", metavar="NAME", help="Start after the position of this consumer."),
    ] = None,
    where: WhereOption = None,
    columns: ColumnsOption = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", min=0, help=f"Print at most this many rows [{TEXT_ROWS} as text, otherwise all]."
        ),
    ] = None,
    branch: BranchOption = None,
) -> None:
    """Print the rows that snapshots deleted and added, oldest first: applied in this order they rebuild the table.

    Example: tableformat changes shop.orders --since 2026-01-31T12:00 --ndjson
    """
    from tableformat.metadata.change_columns import CHANGE_TYPE

    session = Session.of(context)
    feed = session.table(table, branch).changes(
        where,
        names_of(columns),
        from_snapshot_id=from_snapshot,
        to_snapshot_id=to_snapshot,
        from_timestamp=None if since is None else local_ms(since),
        to_timestamp=None if until is None else local_ms(until),
        consumer=consumer,
    )
    types = [iceberg_type(field, feed.view.schema) for field in feed.schema]
    if columns is None:
        feed = feed.select([CHANGE_TYPE.name, *(name for name in feed.schema.names if name != CHANGE_TYPE.name)])
    wanted = limit_of(session.output, limit)
    about = {"from_snapshot_id": feed.from_snapshot_id, "to_snapshot_id": feed.to_snapshot_id}
    with feed.to_batches() as batches:
        print_rows(session.output, Taken(batches, wanted), feed.schema.names, types, about=about)


def consumer(
    context: typer.Context,
    table: WritableTableArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The consumer; without it, all consumers are listed.")
    ] = None,
    snapshot_id: Annotated[
        int | None,
        typer.Argument(metavar="SNAPSHOT_ID", help="The last snapshot that it has applied; default the newest."),
    ] = None,
    *,
    delete: Annotated[bool, typer.Option("--delete", "-d", help="Forget the consumer.")] = False,
    branch: BranchOption = None,
) -> None:
    """Record the position of a reader of `changes`, so that expiry keeps the snapshots that it has not read; list or
    delete consumers.

    Example: tableformat consumer db.orders mart
    """
    from rich.text import Text

    if name is None and delete:
        raise typer.BadParameter("--delete needs the NAME of a consumer.")
    if delete and snapshot_id is not None:
        raise typer.BadParameter("--delete does not accept a SNAPSHOT_ID.")
    session = Session.of(context)
    if name is None:
        listed = session.table(table, branch).consumers.list()
        types = ["string", "string", "long", "timestamptz", "long", "long", "string"]
        print_rows(session.output, Taken(listed.to_reader(), None), listed.schema.names, types)
        return
    handle = session.writable_table(table, branch)
    if delete:
        handle.consumers.drop(name)
        told, at = f"{handle.name}: consumer {name} deleted.", None
    else:
        at = handle.consumers.advance(name, snapshot_id).snapshot_id
        told = f"{handle.name}: consumer {name} is at snapshot {at}."
    session.output.emit(lambda: {"table": handle.name, "consumer": name, "snapshot_id": at}, lambda: Text(told))
