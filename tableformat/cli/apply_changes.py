"""`apply-changes`: applies change events of Parquet, CSV and JSON files to a table in one snapshot."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tableformat.cli.load import emit_loaded, rows_of_files, unreadable_is_refused
from tableformat.cli.options import (
    ApplicationOption,
    BatchOption,
    DryRunOption,
    Stale,
    StaleOption,
    UnchangedOption,
    WritableTableArgument,
    batch_of,
    names_of,
)
from tableformat.cli.session import Session


class Envelope(StrEnum):
    """Forms of events."""

    DEBEZIUM = "debezium"


class Missing(StrEnum):
    """Values for columns that the events lack."""

    ERROR = "error"
    NULL = "null"
    KEEP = "keep"


def apply_changes(
    context: typer.Context,
    table: WritableTableArgument,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Parquet, CSV or JSON, one event per line", exists=True, dir_okay=False),
    ],
    *,
    op_column: Annotated[
        str | None,
        typer.Option("--op-column", metavar="NAME", help="The operation column; default _op, with --envelope op."),
    ] = None,
    order_by: Annotated[
        str | None,
        typer.Option(
            "--order-by",
            metavar="A,B",
            help="The columns that order the events; default _ts, with --envelope the position in source.",
        ),
    ] = None,
    in_order: Annotated[bool, typer.Option("--in-order", help="The events are in order in the files.")] = False,
    envelope: Annotated[
        Envelope | None,
        typer.Option("--envelope", help="The events have the Debezium columns before, after, op and source."),
    ] = None,
    whole_rows: Annotated[
        bool,
        typer.Option("--whole-rows", help="Match all columns instead of the key: a delete removes one equal row."),
    ] = False,
    missing: Annotated[
        Missing,
        typer.Option(
            "--missing",
            help="What to do about columns that the events lack: fail, write null, or keep the stored values.",
        ),
    ] = Missing.ERROR,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Apply to this branch instead of main.")
    ] = None,
    dry_run: DryRunOption = False,
    application_id: ApplicationOption = None,
    batch_id: BatchOption = None,
    if_unchanged_since: UnchangedOption = None,
    on_stale: StaleOption = Stale.IGNORE,
) -> None:
    """Apply change events to a table in one snapshot: the last event of each key decides.

    Operations are I, U, D and T, words such as insert, update, delete and truncate, and the codes of Spark and Flink. A
    delete only needs the columns of the key. Values are read as by load.

    Example: tableformat apply-changes db.orders events.jsonl --envelope debezium
    """
    if in_order and order_by is not None:
        raise typer.BadParameter("pass either --order-by or --in-order, not both.")
    batch = batch_of(application_id, batch_id, if_unchanged_since)
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    with unreadable_is_refused(files):
        result = handle.apply_changes(
            rows_of_files(files, handle.schema, images=("before", "after", "payload") if envelope else ()),
            op=op_column or "_op",
            order_by=None if in_order else names_of(order_by) or "_ts",
            envelope=envelope,
            key=None if whole_rows else "table",
            missing=missing.value,
            on_stale=on_stale.value,
            dry_run=dry_run,
            **batch,
        )
    emit_loaded(session, handle, files, result, done="applied to")
