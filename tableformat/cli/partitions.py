"""`partitions`, `alter-partitions`, `advance-window`, `retire`, `restore`: the declared ranges of a table."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tableformat.cli.confirm import ask
from tableformat.cli.options import (
    AsOfOption,
    BranchOption,
    DryRunOption,
    JobBranchOption,
    SnapshotOption,
    TableArgument,
    TagOption,
    WritableTableArgument,
    YesOption,
)
from tableformat.cli.session import Session, view_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tableformat.operations.ranges.result import RangePartitionsResult
    from tableformat.table import Table

_RANGE = "'[LOWER, UPPER)'"


def partitions(
    context: typer.Context,
    table: TableArgument,
    *,
    snapshot: SnapshotOption = None,
    as_of: AsOfOption = None,
    tag: TagOption = None,
    branch: BranchOption = None,
    history: Annotated[
        bool, typer.Option("--history", help="List the changes of the ranges, as far back as the metadata log goes.")
    ] = False,
) -> None:
    """List the range partitions of a table, including empty and retired ones, and their contents, from metadata.

    Example: tableformat partitions shop.sales --history
    """
    from tableformat.display.grid import Column, grid
    from tableformat.operations.inspect import Inspect

    session = Session.of(context)
    handle = session.table(table, branch)
    view = view_of(handle, snapshot_id=snapshot, as_of=as_of, tag=tag, branch=branch)
    inspect = Inspect(view, handle.branch, handle.iceberg.metadata_location)
    if history:
        changes = inspect.range_partition_history()
        session.output.emit(
            lambda: {"table": handle.name, "changes": _json_rows(changes)},
            lambda: grid([Column(name) for name in changes.column_names], _cells(changes)),
        )
        return
    listed = inspect.range_partitions()
    texts, numbers = ["partition", "state"], ["file_count", "record_count", "total_bytes", "straddling_file_count"]
    retired = ["tag", "retired_at"] if listed["tag"].null_count < len(listed) else []
    session.output.emit(
        lambda: {
            "table": handle.name,
            "partitions": _json_rows(listed),
        },
        lambda: grid(
            [
                Column("partition"),
                Column("state"),
                *(Column(name, is_number=True) for name in ("files", "rows", "bytes", "straddling")),
                *(Column(name) for name in retired),
            ],
            _cells(listed.select([*texts, *numbers, *retired])),
        ),
    )


def alter_partitions(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    add: Annotated[list[str] | None, typer.Option("--add", metavar=_RANGE, help="A range to add. Repeatable.")] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar=_RANGE, help="Whole partitions to drop with their rows. Repeatable."),
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option("--split", metavar="VALUE", help="A new boundary. Repeatable.")
    ] = None,
    merge: Annotated[
        list[str] | None, typer.Option("--merge", metavar=_RANGE, help="Partitions to merge into one. Repeatable.")
    ] = None,
    metadata_only: Annotated[
        bool, typer.Option("--metadata-only", help="Reject a drop that needs a delete file.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Change the declared ranges of a table in one commit.

    Example: tableformat alter-partitions shop.sales --add '[2026, 2027)' --drop '[2020, 2021)'
    """
    from tableformat.range_partitions.range_text import parse_end, parse_range

    session = Session.of(context)
    handle = session.writable_table(table, branch)
    on, schema = handle.range_partitions.on, handle.metadata.schema()
    changes: dict[str, Any] = {
        "add": [parse_range(text, on, schema) for text in add or ()],
        "drop": [parse_range(text, on, schema) for text in drop or ()],
        "split": [parse_end(text, on, schema) for text in split or ()],
        "merge": [parse_range(text, on, schema) for text in merge or ()],
        "metadata_only": metadata_only,
    }
    if not any(changes[name] for name in ("add", "drop", "split", "merge")):
        raise typer.BadParameter("pass --add, --drop, --split or --merge.")
    if changes["drop"] and not (dry_run or yes):
        tried = handle.range_partitions.alter(**changes, dry_run=True)
        ask(f"Drop {', '.join(tried.dropped)} of {handle.name} with {_contents(tried)}?", session)
    _tell(session, handle, handle.range_partitions.alter(**changes, dry_run=dry_run))


def advance_window(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    now: Annotated[
        str | None, typer.Option("--now", metavar="VALUE", help="The time or number at the window; default: the clock.")
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Add future partitions, and drop partitions that are older than the table's retention.

    Example: tableformat advance-window shop.sales --dry-run
    """
    from tableformat.range_partitions.range_text import parse_end

    session = Session.of(context)
    handle = session.writable_table(table, branch)
    changes = handle.range_partitions
    moment = None if now is None else parse_end(now, changes.on, handle.metadata.schema())
    tried = changes.advance(moment, dry_run=True)
    if tried.dropped and not (dry_run or yes):
        ask(f"Drop {', '.join(tried.dropped)} of {handle.name} with {_contents(tried)}?", session)
    _tell(session, handle, tried if dry_run else changes.advance(moment))


def retire(
    context: typer.Context,
    table: WritableTableArgument,
    partition: Annotated[str, typer.Argument(metavar=_RANGE, help="Whole partitions, as `partitions` lists them.")],
    *,
    dry_run: DryRunOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Drop partitions and keep their files under a tag; `restore` brings them back.

    Example: tableformat retire shop.sales '[2020, 2021)'
    """
    from tableformat.range_partitions.range_text import parse_range

    session = Session.of(context)
    handle = session.writable_table(table, branch)
    changes = handle.range_partitions
    given = parse_range(partition, changes.on, handle.metadata.schema())
    result = changes.retire(
        given.lower,
        given.upper,
        lower_inclusive=given.lower_inclusive,
        upper_inclusive=given.upper_inclusive,
        dry_run=dry_run,
    )
    _tell(session, handle, result)


def restore(
    context: typer.Context,
    table: WritableTableArgument,
    tag: Annotated[str, typer.Argument(metavar="TAG", help="The tag that `retire` printed.")],
    *,
    deletes: Annotated[
        str | None,
        typer.Option(
            "--deletes",
            metavar="apply|ignore",
            help="Whether to apply deletes that were committed since then.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    branch: JobBranchOption = None,
) -> None:
    """Bring back the partitions that were retired under a tag.

    Example: tableformat restore shop.sales retired-2020-2021
    """
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    _tell(session, handle, handle.range_partitions.restore(tag, deletes=deletes, dry_run=dry_run))


def _json_rows(listed: pa.Table) -> list[dict[str, Any]]:
    from tableformat.cli.json_values import json_rows

    return [row for batch in listed.to_batches() for row in json_rows(batch, listed.schema.names)]


def _cells(listed: pa.Table) -> list[tuple[str, ...]]:
    return [tuple(map(_cell, row.values())) for row in listed.to_pylist()]


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return "" if value is None else str(value)


def _contents(result: RangePartitionsResult) -> str:
    from tableformat.display.text import counted

    told = f"{counted(result.removed_data_files_count, 'data file')} of {counted(result.removed_row_count, 'row')}"
    if not result.straddling_data_files_count:
        return told
    return f"{told}, and rows of {counted(result.straddling_data_files_count, 'data file')} that cross a boundary"


def _tell(session: Session, handle: Table, result: RangePartitionsResult) -> None:
    from rich.text import Text

    session.output.emit(
        lambda: {"table": handle.name, **dataclasses.asdict(result)},
        lambda: Text("\n".join(_sentences(handle, result))),
    )


def _sentences(handle: Table, result: RangePartitionsResult) -> list[str]:
    would = "would be " if result.dry_run else ""
    lines = [f"{handle.name}: {would}added {each}." for each in result.added]
    if result.dropped:
        lines.append(f"{handle.name}: {would}dropped {', '.join(result.dropped)} with {_contents(result)}.")
    if result.tag and result.dropped:
        lines.append(f"To restore: tableformat restore {handle.name} {result.tag}")
    if result.snapshot_id is not None:
        lines.append(f"Snapshot {result.snapshot_id}.")
    return lines or [f"{handle.name}: {'nothing would change' if result.dry_run else 'done, without a snapshot'}."]
