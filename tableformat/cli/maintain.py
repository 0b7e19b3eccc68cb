"""Commands that rewrite data files, delete files and manifests, and publish branches; rows stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tableformat.cli.confirm import ask
from tableformat.cli.options import (
    DryRunOption,
    FilesWhereOption,
    JobBranchOption,
    WritableTableArgument,
    YesOption,
)
from tableformat.cli.running import running
from tableformat.cli.session import Session

if TYPE_CHECKING:
    from tableformat.table import Table


def convert_deletes(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    where: FilesWhereOption = None,
    max_commits: Annotated[int, typer.Option(metavar="N", help="Maximum number of commits, for large tables.")] = 10,
    dry_run: DryRunOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Convert equality and range deletes to position deletes, so that every Iceberg engine can read the table.

    Example: tableformat convert-deletes shop.orders
    """
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    with running(session, handle, dry_run=dry_run) as progress:
        result = handle.maintenance.convert_deletes(
            where=where, max_commits=max_commits, dry_run=dry_run, progress=progress
        )
    emit_result(session, handle, result)


def apply_retention(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Delete the rows that the property tableformat.retain no longer keeps. No existing data is read.

    Example: tableformat apply-retention shop.events --dry-run
    """
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    tried = handle.maintenance.apply_retention(dry_run=True)
    if tried.data_files_count and not (dry_run or yes):
        rules = "; ".join(f"{each.rule}, before {each.cutoff}" for each in tried.rules)
        ask(f"Delete old rows of {handle.name} ({rules})?", session)
    emit_result(session, handle, tried if dry_run else handle.maintenance.apply_retention())


def drop_dead_deletes(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    dry_run: DryRunOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Drop delete files that match no row any more, each with a proof. Opens no data file.

    Example: tableformat drop-dead-deletes shop.orders
    """
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    with running(session, handle, dry_run=dry_run) as progress:
        result = handle.maintenance.drop_dead_deletes(dry_run=dry_run, progress=progress)
    emit_result(session, handle, result)


def merge_range_deletes(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    dry_run: DryRunOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Merge the range delete files of many commits, so that planning a scan opens fewer files. Opens no data file.

    Example: tableformat merge-range-deletes shop.orders
    """
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    with running(session, handle, dry_run=dry_run) as progress:
        result = handle.maintenance.merge_range_deletes(dry_run=dry_run, progress=progress)
    emit_result(session, handle, result)


def rewrite_position_delete_files(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    where: FilesWhereOption = None,
    rewrite_all: Annotated[
        bool, typer.Option("--rewrite-all", "--all", help="Also rewrite data files that only one delete file names.")
    ] = False,
    dry_run: DryRunOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Merge the position deletes of each data file into one file. Opens no data file.

    Example: tableformat rewrite-position-delete-files shop.orders
    """
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    with running(session, handle, dry_run=dry_run) as progress:
        result = handle.maintenance.rewrite_position_delete_files(
            where=where, rewrite_all=rewrite_all, dry_run=dry_run, progress=progress
        )
    emit_result(session, handle, result)


def rewrite_manifests(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    spec_id: Annotated[
        int | None, typer.Option(metavar="N", help="Only manifests of this partition spec; default all.")
    ] = None,
    sort_by: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="Sort first by this partition field. Repeatable.")
    ] = None,
    dry_run: DryRunOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Group manifest entries by partition, so that filtered scans read fewer manifests.

    Example: tableformat rewrite-manifests shop.orders
    """
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    with running(session, handle, dry_run=dry_run) as progress:
        result = handle.maintenance.rewrite_manifests(
            dry_run=dry_run, spec_id=spec_id, sort_by=sort_by or None, progress=progress
        )
    emit_result(session, handle, result)


def compute_table_stats(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="NAME", help="Count only this column; default all. Repeatable."),
    ] = None,
    snapshot: Annotated[int | None, typer.Option(metavar="ID", help="The snapshot to count; default the head.")] = None,
    dry_run: DryRunOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Count the distinct values of columns into a statistics file, for the optimizers of engines.

    Example: tableformat compute-table-stats shop.orders --column customer
    """
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    with running(session, handle, dry_run=dry_run) as progress:
        result = handle.maintenance.compute_table_stats(
            column or None, snapshot_id=snapshot, dry_run=dry_run, progress=progress
        )
    emit_result(session, handle, result)


def publish(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    source: Annotated[
        str, typer.Option("--branch", "--source", metavar="NAME", help="The branch that writers commit to.")
    ] = "ingest",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The branch that readers use; default the source's publish target, else main."
        ),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Convert a branch, and move the branch that other engines read forward to it.

    Example: tableformat publish shop.orders --branch ingest --target main
    """
    from tableformat.commit.publish_target import publish_target_of

    session = Session.of(context)
    handle = session.writable_table(table, source)
    target = target or publish_target_of(handle.metadata, source) or "main"
    with running(session, handle, dry_run=dry_run) as progress:
        result = handle.maintenance.publish(source, target, dry_run=dry_run, progress=progress)
    emit_result(session, handle, result)


def emit_result(session: Session, table: Table, result: Any) -> None:
    """Print the fields of a job's result as JSON, or as text."""
    from tableformat.display.jobs import render_job, result_dict

    session.output.emit(lambda: {"table": table.name, **result_dict(result)}, lambda: render_job(result, table.name))
