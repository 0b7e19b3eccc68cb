"""`maintain --watch`: upkeep of many tables as a service (MT-88)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from tableformat.cli.session import Session

if TYPE_CHECKING:
    from tableformat.catalogs.catalog import Catalog
    from tableformat.maintenance.upkeep.rounds import UpkeepResult
    from tableformat.table import Table


def refuse_with_watch(options: Mapping[str, object]) -> None:
    """A usage error for budgets of a single run, which have no meaning for a service."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise typer.BadParameter(f"{', '.join(given)} cannot be used with --watch.")


def watch_tables(
    session: Session, names: Sequence[str], *, interval: str, run_for: str | None, branch: str | None
) -> None:
    """Check the tables every `interval` and run the due upkeep, one table at a time, until Ctrl-C. MT-101: if the
    catalog cannot be reached, this is reported and tried again, except in the first round."""
    from tableformat.cli.quantities import parse_duration
    from tableformat.errors import StorageError
    from tableformat.markup.figures import counted

    pause_seconds = parse_duration(interval, "--interval")
    seconds = None if run_for is None else parse_duration(run_for, "--for")
    catalog = session.catalog()
    for name in names:
        catalog.load_table(name)  # A name that is wrong is an error now, not a line in a log.
    if session.output.progress_console() is not None:
        watched = counted(len(names), "table") if names else "the tables of the catalog"
        session.output.note(f"Checking {watched} every {pause_seconds:g} s. Press Ctrl-C to stop.")
    started = time.monotonic()
    is_first = True
    try:
        while True:
            try:
                tables = list(in_order_of_gain(session, catalog, names or None, branch or "main"))
            except StorageError as error:
                if is_first:
                    raise
                session.output.error(error, f"the tables cannot be listed; trying again later: {error}")
                tables = []
            for table in tables:
                _keep(session, table, is_named=bool(names))
            is_first = False
            if seconds is not None and time.monotonic() - started + pause_seconds > seconds:
                return
            time.sleep(pause_seconds)
    except KeyboardInterrupt:
        return


def in_order_of_gain(session: Session, catalog: Catalog, names: Sequence[str] | None, branch: str) -> Iterator[Table]:
    """MT-88: the tables whose upkeep is due, highest gain first. Tables dropped in the meantime are left out. A table
    that cannot be checked is reported, and the others are still checked."""
    from tableformat.errors import SnapshotNotFoundError, TableFormatError, TableNotFoundError
    from tableformat.maintenance.upkeep.backlog import Backlog
    from tableformat.maintenance.upkeep.policy import UpkeepPolicy

    due: list[tuple[float, str, Table]] = []
    for name in names if names is not None else catalog.list_tables():
        try:
            table = catalog.load_table(name, branch=branch)
            if names is None and is_off(table):
                continue
            backlog = Backlog.of(table.iceberg, branch, UpkeepPolicy.of(table.properties))
        except (TableNotFoundError, SnapshotNotFoundError):
            continue
        except TableFormatError as error:
            session.output.error(error, f"{name}: {error}")
            continue
        if backlog.is_due:
            due.append((-backlog.per_byte, name, table))
    for _, _, table in sorted(due, key=lambda each: each[:2]):
        yield table


def is_off(table: Table) -> bool:
    """Whether the table's properties turn upkeep off."""
    from tableformat.properties import UPKEEP

    return table.properties.get(UPKEEP, "").lower() == "off"


def _keep(session: Session, table: Table, *, is_named: bool) -> None:
    """Run the upkeep of one table. Errors are reported, and the other tables are still processed. MT-101: the table may
    have been dropped, or its upkeep turned off, while the tables before it were processed."""
    from tableformat.errors import (
        CommitExitError,
        CommitInterruptedError,
        SnapshotNotFoundError,
        TableFormatError,
        TableNotFoundError,
    )

    try:
        if is_off(table.refresh()) and not is_named:
            return
        results = table.maintenance.upkeep()
    except (CommitInterruptedError, CommitExitError):
        raise
    except (TableNotFoundError, SnapshotNotFoundError):
        return
    except TableFormatError as error:
        session.output.error(error, f"{table.name}: {error}")
        return
    if not any(each.jobs for each in results):
        return  # Files that were new, and no level that is full: said each time, it would fill a log.
    session.output.emit(
        lambda: told_of(table.name, results),
        lambda: Text(f"{time.strftime('%H:%M:%S')} {line_of(table.name, results)}"),
    )
    session.output.flush()


def told_of(name: str, results: Sequence[UpkeepResult]) -> dict[str, object]:
    """The sums over all rounds."""
    return {
        "table": name,
        "merged_data_files_count": sum(each.merged_data_files_count for each in results),
        "added_data_files_count": sum(each.added_data_files_count for each in results),
        "converted_delete_files_count": sum(each.converted_delete_files_count for each in results),
        "written_bytes": sum(each.written_bytes for each in results),
        "expired_snapshots_count": sum(each.expired_snapshots_count for each in results),
        "lost_race_count": sum(each.lost_race_count for each in results),
        "duration_seconds": sum(each.duration_seconds for each in results),
    }


def line_of(name: str, results: Sequence[UpkeepResult]) -> str:
    """The same as text."""
    told = told_of(name, results)
    return (
        f"{name}: {told['merged_data_files_count']:,} data files became "
        f"{told['added_data_files_count']:,}, {told['converted_delete_files_count']:,} equality deletes converted, "
        f"{told['expired_snapshots_count']:,} snapshots expired, "
        f"{told['lost_race_count']:,} races lost, {told['duration_seconds']:.1f} s"
    )
