"""`convert-deletes`: what makes a table readable by every Iceberg engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tableformat.cli.options import DryRunOption, WritableTableArgument
from tableformat.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from tableformat.maintenance.progress import Progress


def convert_deletes(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    dry_run: DryRunOption = False,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Convert this branch instead of main.")
    ] = None,
) -> None:
    """Turn equality and range deletes into position deletes, after which every Iceberg engine reads the table."""
    from tableformat.display.results import convert_dict, render_conversion

    session = Session.of(context)
    handle = session.writable_table(table, branch)
    with drawn_progress(session.output.progress_console()) as progress:
        result = handle.maintenance.convert_deletes(dry_run=dry_run, progress=progress)
    session.output.emit(
        lambda: {"table": handle.name, **convert_dict(result)}, lambda: render_conversion(result, handle.name)
    )


@contextmanager
def drawn_progress(console: Console | None) -> Iterator[Progress | None]:
    """A progress bar that a job drives; None, and nothing drawn, without a console."""
    if console is None:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        bar = bars.add_task("planning", total=None)

        def progress(done: int, total: int, what: str) -> None:
            bars.update(bar, description=what, completed=done, total=total)

        yield progress
