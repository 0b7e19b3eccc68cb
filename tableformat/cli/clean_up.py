"""`expire-snapshots` and `remove-orphan-files`: commands that remove files and ask for confirmation first."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from tableformat.cli.confirm import ask, require_terminal
from tableformat.cli.maintain import emit_result
from tableformat.cli.options import DryRunOption, WritableTableArgument, YesOption
from tableformat.cli.running import running
from tableformat.cli.session import Session


def expire_snapshots(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE|TIME",
            help="Expire snapshots older than this, such as 7d or 2026-01-31; default the table's setting, else 5d.",
        ),
    ] = None,
    retain_last: Annotated[
        int | None, typer.Option(metavar="N", help="Keep at least the N newest snapshots of each branch; default 1.")
    ] = None,
    snapshot_id: Annotated[
        list[int] | None, typer.Option(metavar="ID", help="Expire this snapshot regardless of its age. Repeatable.")
    ] = None,
    clean_expired_files: Annotated[
        bool, typer.Option("--clean-expired-files/--keep-files", help="Remove files that are no longer needed.")
    ] = True,
    clean_expired_metadata: Annotated[
        bool,
        typer.Option("--clean-expired-metadata", help="Remove unused schemas and partition specs from the metadata."),
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Remove old snapshots, and the files that no snapshot, branch or tag needs any more.

    Example: tableformat expire-snapshots shop.orders --older-than 7d --dry-run
    """
    from tableformat.cli.quantities import parse_moment
    from tableformat.display.text import counted, size

    session = Session.of(context)
    handle = session.writable_table(table)
    expire = partial(
        handle.maintenance.expire_snapshots,
        older_than=None if older_than is None else parse_moment(older_than, "--older-than"),
        retain_last=retain_last,
        snapshot_ids=snapshot_id or (),
        clean_expired_files=clean_expired_files,
        clean_expired_metadata=clean_expired_metadata,
    )
    if not (dry_run or yes):
        require_terminal(f"Expire snapshots of {handle.name}?")
        with running(session, handle, dry_run=True):
            found = expire(dry_run=True)
        if found.expired_snapshots_count:
            what = f"{counted(found.expired_snapshots_count, 'snapshot')} of {handle.name}"
            ask(f"Expire {what} and free {size(found.freed_bytes)}? They cannot be read again.", session)
    with running(session, handle, dry_run=dry_run) as progress:
        result = expire(dry_run=dry_run, progress=progress)
    emit_result(session, handle, result)


def remove_orphan_files(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE|TIME", help="Only files last written before this, such as 7d or 2026-01-31; default 3d."
        ),
    ] = None,
    location: Annotated[str | None, typer.Option(metavar="PATH", help="Only this directory of the table.")] = None,
    allow_recent: Annotated[
        bool,
        typer.Option(
            "--allow-recent", help="Allow --older-than of less than a day. Use it only if nobody writes to the table."
        ),
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Remove files in the table's directory that no metadata names, for example files of failed writers.

    Example: tableformat remove-orphan-files shop.orders --dry-run
    """
    from tableformat.cli.quantities import parse_moment
    from tableformat.display.text import counted, size

    session = Session.of(context)
    handle = session.writable_table(table)
    remove = partial(
        handle.maintenance.remove_orphan_files,
        older_than=None if older_than is None else parse_moment(older_than, "--older-than"),
        location=location,
        allow_recent=allow_recent,
    )
    if not (dry_run or yes):
        require_terminal(f"Remove orphan files of {handle.name}?")
        with running(session, handle, dry_run=True):
            found = remove(dry_run=True)
        if found.orphan_file_locations:
            what = counted(len(found.orphan_file_locations), "file")
            ask(f"Remove {what} of {size(found.freed_bytes)} that {handle.name} does not reference?", session)
    with running(session, handle, dry_run=dry_run) as progress:
        result = remove(dry_run=dry_run, progress=progress)
    emit_result(session, handle, result)
