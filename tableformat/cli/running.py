"""Runs a maintenance job with a progress bar, and reports the commits if Ctrl-C stops it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from tableformat.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from tableformat.maintenance.running.progress import Progress
    from tableformat.table import Table

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as in shells."""


JOBS_DONE: Final = "jobs"
"""Unit of progress in a run of several jobs, besides the steps of each job (MT-60)."""


@contextmanager
def running(session: Session, table: Table, *, dry_run: bool = False) -> Iterator[Progress | None]:
    """Draw the progress of a job on the table. Ctrl-C ends the command: jobs remove their uncommitted files, and the
    commits are reported."""
    from tableformat.errors import CommitInterruptedError

    branch_before = table.snapshot_id
    table_before = table.iceberg.metadata_location
    try:
        with drawn_progress(session.output.progress_console()) as progress:
            yield progress
    except CommitInterruptedError:
        raise
    except KeyboardInterrupt as interrupt:
        told = "nothing was changed." if dry_run else _what_changed(session, table, branch_before, table_before)
        session.output.error(interrupt, f"interrupted: {told}")
        raise typer.Exit(INTERRUPTED) from interrupt


@contextmanager
def drawn_progress(console: Console | None) -> Iterator[Progress | None]:
    """A progress bar for a job, and a second one for a run of several jobs. Without a console, nothing is drawn and the
    value is None."""
    if console is None:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        bar_of_run: TaskID | None = None
        bar = bars.add_task("planning", total=None)

        def progress(done: int, total: int, what: str) -> None:
            nonlocal bar_of_run
            if what != JOBS_DONE:
                bars.update(bar, description=what, completed=done, total=total)
                return
            if bar_of_run is None:
                bar_of_run = bars.add_task(what)
            bars.update(bar_of_run, completed=done, total=total)
            bars.reset(bar, description="planning", total=None)

        yield progress


def _what_changed(session: Session, table: Table, branch_before: int | None, table_before: str) -> str:
    from tableformat.metadata.snapshot_choice import ancestors

    table.refresh()
    if table.iceberg.metadata_location == table_before:
        return f"nothing was committed; {table.name} is unchanged."
    new = []
    for snapshot in ancestors(table.metadata, table.view.snapshot):
        if snapshot.snapshot_id == branch_before:
            break
        operation = snapshot.summary.operation.value if snapshot.summary else "unknown"
        new.append(f"{snapshot.snapshot_id} ({operation})")
    what = f"snapshots {', '.join(reversed(new))} of branch {table.branch}" if new else "changes of metadata only"
    clean = session.command(f"remove-orphan-files {shlex.quote(table.name)}", branch="main")
    return (
        f"{table.name} got {what} since the command began. These commits remain; uncommitted work was discarded. "
        f"Files that were about to be removed can be removed with `{clean}`."
    )
