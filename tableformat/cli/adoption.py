"""`adopt`, `add-files`, `register-table`: tables and files of other writers."""

from __future__ import annotations

from typing import Annotated

import typer

from tableformat.cli.options import BranchOption, DryRunOption, WritableTableArgument, names_of_all
from tableformat.cli.session import Session
from tableformat.cli.upkeep import with_commands


def adopt(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="The key columns, most significant first. Default: the table's."),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Give a key to a table of another writer: the columns become required if no row has a null in them.

    Example: tableformat adopt shop.orders --key customer,order
    """
    from tableformat.display.health import render_health
    from tableformat.display.jobs import result_dict
    from tableformat.display.text import counted

    session = Session.of(context)
    with session.catalog() as catalog:
        result = catalog.adopt_table(table, key=names_of_all(key) or None, dry_run=dry_run)
        found = with_commands(session, result.health, catalog.load_table(table))
    if not session.output.is_json:
        done = "would have" if dry_run else "has"
        required = f"; made required: {', '.join(result.required_columns)}" if result.required_columns else ""
        read = f"; {counted(result.read_files_count, 'data file')} read for nulls"
        session.output.write(f"{result.table} {done} the key ({', '.join(result.key)}){required}{read}.\n\n")
    session.output.emit(lambda: {**result_dict(result), "health": found.to_dict()}, lambda: render_health(found))


def add_files(
    context: typer.Context,
    table: WritableTableArgument,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="LOCATION...", help="Parquet files, directories, or quoted patterns such as 'in/**/*.parquet'."
        ),
    ],
    *,
    check_duplicate_files: Annotated[
        bool,
        typer.Option(
            "--check-duplicate-files/--allow-duplicate-files", help="Reject files that are already in the table."
        ),
    ] = True,
    branch: BranchOption = None,
) -> None:
    """Add existing Parquet files to a table. Rows are read only if footers do not show that they fit.

    Names of directories such as day=2026-01-31 are values of a partition column that the files lack.

    Example: tableformat add-files shop.orders orders/
    """
    from tableformat.display.jobs import result_dict
    from tableformat.display.text import counted

    session = Session.of(context)
    handle = session.writable_table(table, branch)
    result = handle.add_files(files, check_duplicate_files=check_duplicate_files)
    added = f"{counted(result.added_data_files_count, 'file')} with {counted(result.added_row_count, 'row')}"
    session.output.emit(
        lambda: {"table": handle.name, **result_dict(result)}, lambda: f"{added} added to {handle.name}."
    )


def register_table(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The new name in the catalog (db.t).")],
    metadata_location: Annotated[str, typer.Argument(metavar="METADATA", help="Its current metadata.json file.")],
) -> None:
    """Add an existing table to the catalog by its metadata file.

    Example: tableformat register-table shop.orders s3://bucket/orders/metadata/00007.metadata.json
    """
    session = Session.of(context)
    with session.catalog() as catalog:
        registered = catalog.register_table(table, metadata_location)
        document = {"table": registered.name, "location": registered.location, "snapshot_id": registered.snapshot_id}
    session.output.emit(lambda: document, lambda: f"{registered.name} is the table at {registered.location}.")
