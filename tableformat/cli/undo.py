"""`revert` and `restore-rows`: undo a commit, or a part of it, and keep the later commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tableformat.cli.options import (
    ApplicationOption,
    BatchOption,
    DryRunOption,
    WritableTableArgument,
    batch_of,
)
from tableformat.cli.session import Session, local_ms

if TYPE_CHECKING:
    from tableformat.operations.staging.result import CommitResult
    from tableformat.table import Table

_BranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="Change this branch instead of main.")
]


def revert(
    context: typer.Context,
    table: WritableTableArgument,
    snapshot_id: Annotated[int, typer.Argument(metavar="SNAPSHOT_ID", help="The snapshot to revert.")],
    *,
    dry_run: DryRunOption = False,
    branch: _BranchOption = None,
    application_id: ApplicationOption = None,
    batch_id: BatchOption = None,
) -> None:
    """Undo one commit and keep the later ones. Fails if a later commit changed the same rows.

    Example: tableformat revert shop.orders 8423719034
    """
    batch = batch_of(application_id, batch_id)
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    _emit(session, handle, handle.revert(snapshot_id, dry_run=dry_run, **batch))


def restore_rows(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    where: Annotated[str, typer.Option("--where", metavar="SQL", help="The rows to restore.")],
    snapshot: Annotated[
        int | None, typer.Option("--snapshot", metavar="ID", help="Restore their state in this snapshot.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="TIME", help="Restore their state at this time (ISO 8601).")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="NAME", help="Restore their state in this tag.")] = None,
    dry_run: DryRunOption = False,
    branch: _BranchOption = None,
    application_id: ApplicationOption = None,
    batch_id: BatchOption = None,
) -> None:
    """Restore the matching rows to the state of an earlier snapshot. Other rows are unchanged.

    Example: tableformat restore-rows shop.orders --where "customer = 'ann'" --as-of 2026-01-31T12:00
    """
    if sum(each is not None for each in (snapshot, as_of, tag)) != 1:
        raise typer.BadParameter("pass one of --snapshot, --as-of and --tag.")
    batch = batch_of(application_id, batch_id)
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    moment = None if as_of is None else local_ms(as_of)
    result = handle.restore_rows(where, snapshot_id=snapshot, as_of=moment, tag=tag, dry_run=dry_run, **batch)
    _emit(session, handle, result)


def _emit(session: Session, table: Table, result: CommitResult) -> None:
    from rich.text import Text

    from tableformat.display.results import commit_dict, commit_text

    session.output.emit(lambda: {"table": table.name, **commit_dict(result)}, lambda: Text(commit_text(result)))
