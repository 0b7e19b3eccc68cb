"""`relocate`: updates the locations in a lake's metadata, or copies its tables to another lake."""

from __future__ import annotations

from typing import Annotated

import typer

from tableformat.cli.options import DryRunOption, parse_options
from tableformat.cli.running import INTERRUPTED, drawn_progress
from tableformat.cli.session import Session


def relocate(
    context: typer.Context,
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help="Only these tables; requires --to.", show_default=False),
    ] = None,
    *,
    to: Annotated[
        str | None,
        typer.Option(metavar="PATH|URI", help="Copy the tables to this lake, which is created if it does not exist."),
    ] = None,
    to_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A property of the lake at --to, such as catalog_file. Repeatable."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Update tables that already exist at --to to the current state.")
    ] = False,
    outside: Annotated[
        str | None,
        typer.Option(
            metavar="keep|forget",
            help="Tables outside the lake: keep them (the lake was moved), or drop their names from this catalog.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Back up and restore (--to), or update the metadata of a lake that was moved or copied.

    Example: tableformat relocate --to backup/
    """
    from tableformat.display.jobs import result_dict
    from tableformat.display.relocation import render_relocation
    from tableformat.errors import InvalidArgumentError

    session = Session.of(context)
    options = parse_options(to_option or [], hint="--to-option")
    if to is None and options:
        raise InvalidArgumentError("--to-option requires --to.")
    with session.catalog() as catalog:
        try:
            with drawn_progress(session.output.progress_console()) as progress:
                result = catalog.relocate(
                    to,
                    tables=tables or (),
                    replace=replace,
                    outside=outside,  # type: ignore[arg-type]
                    dry_run=dry_run,
                    progress=progress,
                    **options,
                )
        except KeyboardInterrupt as interrupt:
            session.output.error(interrupt, "interrupted: run the same command again to continue.")
            raise typer.Exit(INTERRUPTED) from interrupt
    session.output.emit(lambda: result_dict(result), lambda: render_relocation(result))
