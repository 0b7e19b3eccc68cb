"""`drop`, `rename` and `set-property`: commands about a table as a whole."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from tableformat.cli.confirm import ask
from tableformat.cli.options import WritableTableArgument, YesOption, parse_options
from tableformat.cli.session import Session


def drop(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    purge: Annotated[bool, typer.Option("--purge", help="Also remove its files. This cannot be undone.")] = False,
    yes: YesOption = False,
) -> None:
    """Remove a table from the catalog. Its files stay unless --purge is given; `register-table` adds it again.

    Example: tableformat drop shop.orders --purge
    """
    from rich.text import Text

    session = Session.of(context)
    handle = session.writable_table(table)
    name, metadata_location = handle.name, handle.iceberg.metadata_location
    if not yes:
        ask(f"Drop {name} and remove its files?" if purge else f"Drop {name}? Its files are kept.", session)
    with session.catalog() as catalog:
        catalog.drop_table(table, purge=purge)
    undo = session.command(f"register-table {shlex.quote(name)} {shlex.quote(metadata_location)}", branch="main")
    told = f"{name} dropped and its files removed." if purge else f"{name} dropped; its files were kept.\nUndo: {undo}"
    session.output.emit(
        lambda: {"table": name, "purged": purge, "metadata_location": None if purge else metadata_location},
        lambda: Text(told),
    )


def rename(
    context: typer.Context,
    table: WritableTableArgument,
    to: Annotated[str, typer.Argument(metavar="NEW", help="The new name in the catalog (db.t).")],
) -> None:
    """Rename a table; its files are not moved.

    Example: tableformat rename shop.orders shop.old_orders
    """
    session = Session.of(context)
    before = session.writable_table(table).name
    with session.catalog() as catalog:
        renamed = catalog.rename_table(table, to).name
    session.output.emit(
        lambda: {"table": renamed, "previous_name": before}, lambda: f"{before} was renamed to {renamed}."
    )


def set_property(
    context: typer.Context,
    table: WritableTableArgument,
    properties: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Properties and their values.")
    ] = None,
    *,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="NAME", help="Remove a property instead. Repeatable.")
    ] = None,
) -> None:
    """Set table properties in one commit, or remove some with --unset.

    Example: tableformat set-property shop.orders tableformat.upkeep=writer
    """
    from rich.text import Text

    if bool(properties) == bool(unset):
        raise typer.BadParameter("pass either NAME=VALUE or --unset NAME, not both: each is one commit.")
    given = parse_options(properties or (), hint="NAME=VALUE")
    session = Session.of(context)
    handle = session.writable_table(table)
    if unset:
        handle.remove_properties(*unset)
    else:
        handle.set_properties(given)
    told = f"{', '.join(unset)} removed" if unset else ", ".join(f"{name} = {value}" for name, value in given.items())
    session.output.emit(
        lambda: {"table": handle.name, "properties": handle.properties}, lambda: Text(f"{handle.name}: {told}.")
    )
