"""`erase`: removes rows from the whole history of tables, after a confirmation."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tableformat.cli.confirm import ask, require_terminal
from tableformat.cli.deletes import assignments, values_given
from tableformat.cli.options import DryRunOption, WritableTableArgument, YesOption
from tableformat.cli.running import running
from tableformat.cli.session import Session

if TYPE_CHECKING:
    from tableformat.table import Table


def erase(
    context: typer.Context,
    table: WritableTableArgument,
    prefix: Annotated[
        list[str] | None,
        typer.Argument(metavar="COLUMN=VALUE...", help="Values of the first key columns, such as id1=A id2=3."),
    ] = None,
    *,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="The rows that match, instead of a prefix of the key.")
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="TABLE", help="Erase the same rows in this table too. Repeatable."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="Write the certificate to this new JSON file.")
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Erase rows from all snapshots, branches, tags and retired ranges, and prove it. They cannot be brought back.

    Ends with status 1 if something could not be reached.

    Example: tableformat erase shop.orders customer=ann --certificate ann.json
    """
    from tableformat.display.jobs import erasure_dict, render_erasure
    from tableformat.display.text import counted

    if bool(prefix) == (where is not None):
        raise typer.BadParameter("give COLUMN=VALUE or --where SQL.")
    if certificate is not None and certificate.exists():
        raise typer.BadParameter(f"{certificate} exists already.", param_hint="--certificate")
    session = Session.of(context)
    handle = session.writable_table(table)
    names = [table, *(also or ())]
    with session.catalog() as catalog:
        rows = {name: _rows(catalog.load_table(name), prefix or [], where) for name in names}
        if not (dry_run or yes):
            require_terminal(f"Erase rows of {', '.join(names)}?")
            found = catalog.erase(rows, dry_run=True)
            what = f"{counted(found.erased_rows_count, 'row')} of {', '.join(names)} from all snapshots"
            ask(f"Erase {what}? They cannot be brought back.", session)
        with running(session, handle, dry_run=dry_run) if not also else nullcontext(None) as progress:
            result = catalog.erase(rows, dry_run=dry_run, progress=progress)
    if certificate is not None and not dry_run:
        certificate.write_text(result.to_json(), encoding="utf-8")
    session.output.emit(lambda: erasure_dict(result), lambda: render_erasure(result))
    if not (dry_run or result.is_complete):
        raise typer.Exit(1)


def _rows(table: Table, prefix: list[str], where: str | None) -> Any:
    return values_given(table, assignments(prefix))[0] if where is None else where
