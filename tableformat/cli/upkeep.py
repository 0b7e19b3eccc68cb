"""`health`, `maintain`, `upkeep`, `upgrade`: commands on a table as a whole."""

from __future__ import annotations

import ast
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from tableformat.cli.confirm import ask
from tableformat.cli.maintain import emit_result
from tableformat.cli.options import (
    BranchOption,
    DryRunOption,
    JobBranchOption,
    TableArgument,
    WritableTableArgument,
    YesOption,
    names_of,
)
from tableformat.cli.running import running
from tableformat.cli.session import Session
from tableformat.cli.watch import line_of, refuse_with_watch, told_of, watch_tables

if TYPE_CHECKING:
    from tableformat.maintenance.health.health import TableHealth
    from tableformat.table import Table

_TAKES_AWAY = ("expire_snapshots", "remove_orphan_files")
_COMMANDS = {"table.range_partitions.advance": "advance_window", "table.range_partitions.list": "partitions"}
"""Commands whose name differs from the name of the method."""


def health(context: typer.Context, table: TableArgument, *, branch: BranchOption = None) -> None:
    """Report what slows down reads of a table, and the command to run for each finding. Changes nothing.

    Example: tableformat health shop.orders
    """
    from tableformat.display.health import render_health

    session = Session.of(context)
    handle = session.table(table, branch)
    found = with_commands(session, handle.maintenance.health(), handle)
    session.output.emit(found.to_dict, lambda: render_health(found))


def maintain(
    context: typer.Context,
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE", help="A table of the catalog (db.t); several with --watch.")
    ] = None,
    *,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Run until Ctrl-C: do due work for the given tables, or all tables without tableformat.upkeep=off.",
        ),
    ] = False,
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="With --watch: the interval between checks.")
    ] = "10s",
    run_for: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="With --watch: stop after this time.")
    ] = None,
    time_budget: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="No job starts after this time, such as 30m; long jobs stop then."),
    ] = None,
    byte_budget: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Maximum size of data that compaction reads, such as 10GB.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="JOB,JOB", help="Only these jobs, such as convert-deletes,compact.")
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Run all jobs in a safe order, within budgets: deletes, files, manifests, publish, old snapshots, orphan files.

    Ends with status 1 if a job failed. With --watch it runs as a service for many tables: it merges small files as they
    appear and expires snapshots by the settings of each table. Budgets are then the tables' own properties.

    Example: tableformat maintain --watch --interval 10m
    """
    if watch:
        refuse_with_watch(
            {"--time-budget": time_budget, "--byte-budget": byte_budget, "--only": only, "--dry-run": dry_run or None}
        )
        watch_tables(Session.of(context), tables or [], interval=interval, run_for=run_for, branch=branch)
        return
    if run_for is not None:
        raise typer.BadParameter("--for requires --watch.")
    if tables is None or len(tables) != 1:
        raise typer.BadParameter("pass one table, or several with --watch.")
    (table,) = tables
    from tableformat.cli.quantities import parse_duration, parse_size
    from tableformat.maintenance.run_jobs import JobStatus

    seconds = None if time_budget is None else parse_duration(time_budget, "--time-budget")
    byte_count = None if byte_budget is None else parse_size(byte_budget, "--byte-budget")
    jobs = None if only is None else [name.replace("-", "_") for name in names_of(only) or ()]
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    if not (dry_run or yes) and (jobs is None or set(jobs) & {*_TAKES_AWAY, "advance_window", "apply_retention"}):
        ask(f"Maintain {handle.name}? This expires old snapshots and removes unneeded files.", session)
    with running(session, handle, dry_run=dry_run) as progress:
        result = handle.maintenance.run(
            time_budget_seconds=seconds, byte_budget=byte_count, dry_run=dry_run, only=jobs, progress=progress
        )
    emit_result(session, handle, result)
    if any(report.status is JobStatus.FAILED for report in result.jobs):
        raise typer.Exit(1)


def upkeep(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Run the upkeep of writers with tableformat.upkeep=writer now: merge small files in levels, convert equality
    deletes if there are many, and expire old snapshots by the settings of the table.

    Example: tableformat upkeep shop.orders --dry-run
    """
    from rich.text import Text

    session = Session.of(context)
    handle = session.writable_table(table, branch)
    if not (dry_run or yes):
        ask(f"Keep {handle.name} in shape? This expires snapshots beyond the table's retention.", session)
    with running(session, handle, dry_run=dry_run) as progress:
        results = handle.maintenance.upkeep(dry_run=dry_run, progress=progress)
    would = "dry run, nothing was changed: " if dry_run else ""
    session.output.emit(
        lambda: {**told_of(handle.name, results), "dry_run": dry_run},
        lambda: Text(f"{would}{line_of(handle.name, results)}"),
    )


def upgrade(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    format_version: Annotated[int, typer.Option(metavar="N", help="The format version of Iceberg.")] = 3,
    yes: YesOption = False,
) -> None:
    """Upgrade a table to a newer format version. Version 3 has deletion vectors and row ids. It cannot be undone.

    Example: tableformat upgrade shop.orders --format-version 3
    """
    from rich.text import Text

    session = Session.of(context)
    handle = session.writable_table(table)
    before = handle.metadata.format_version
    if format_version > before and not yes:
        ask(f"Upgrade {handle.name} from version {before} to {format_version}? This cannot be undone.", session)
    handle.upgrade(format_version)
    after = handle.metadata.format_version
    told = f"already has version {after}" if after == before else f"upgraded from version {before} to {after}"
    session.output.emit(
        lambda: {"table": handle.name, "previous_format_version": before, "format_version": after},
        lambda: Text(f"{handle.name}: {told}."),
    )


def with_commands(session: Session, found: TableHealth, table: Table) -> TableHealth:
    """The health of a table, with commands to paste instead of Python calls."""
    from dataclasses import replace

    findings = [
        replace(
            each, command=session.command(command_words(each.command, table), branch=_branch_of(each.command, table))
        )
        for each in found.findings
    ]
    return replace(found, findings=tuple(findings))


def command_words(call: str, table: Table) -> str:
    """The command line for a finding's Python call: `table.maintenance.compact(depth="fold")` is `compact db.t --depth
    fold`. Commands and options have the names of the methods and their arguments."""
    method, arguments = _parsed(call)
    words = [method.replace("_", "-"), table.name]
    for name, value in arguments.items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return shlex.join(words)


def _branch_of(call: str, table: Table) -> str:
    """Jobs for the whole table, and jobs whose arguments name the branch, do not take --branch."""
    method, _ = _parsed(call)
    return "main" if method in (*_TAKES_AWAY, "publish") else table.branch


def _parsed(call: str) -> tuple[str, dict[str, object]]:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call), call
    assert isinstance(node.func, ast.Attribute), call
    method = _COMMANDS.get(ast.unparse(node.func), node.func.attr)
    return method, {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in node.keywords}
