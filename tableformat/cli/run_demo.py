"""`demo`: runs the demonstration job on generated messages."""

from __future__ import annotations

import os
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tableformat.cli.output import console
from tableformat.cli.session import Session


class Writer(StrEnum):
    """The writers of the stream."""

    AUTO = "auto"
    SPARK = "spark"
    LOCAL = "local"


def demo(
    context: typer.Context,
    *,
    directory: Annotated[
        Path | None,
        typer.Option("--directory", "-d", metavar="PATH", help="The working directory. Default: demo-lake."),
    ] = None,
    writer: Annotated[
        Writer, typer.Option(help="Run with Spark, in this process, or with Spark if it is available.")
    ] = Writer.AUTO,
    batches: Annotated[int | None, typer.Option(min=2, help="Number of micro-batches in the stream.")] = None,
    messages: Annotated[int | None, typer.Option(min=1, help="Messages per batch.")] = None,
) -> None:
    """Run the main job: replace rows by key prefix in a stream, query, time travel, convert, read with PyIceberg.

    Example: tableformat demo --writer local --batches 5
    """
    from dataclasses import replace

    from tableformat.demo.messages import MessagePlan
    from tableformat.demo.run import TABLE, run_demo

    session = Session.of(context)
    changes = {"batch_count": batches, "messages_per_batch": messages}
    plan = replace(MessagePlan(), **{name: value for name, value in changes.items() if value is not None})
    # With JSON, progress is written to stderr, and only the report to stdout.
    stream = sys.stderr if session.output.is_json else sys.stdout
    report = run_demo(directory, writer.value, console(stream), plan)
    if session.output.is_json:
        session.output.emit(report.to_dict, report.render)
    else:
        lake = shlex.quote(os.path.relpath(Path(report.directory, "lake")))
        session.output.note(f"To look at it: tableformat --catalog {lake} show {TABLE}")
    if not report.is_consistent:
        raise typer.Exit(1)
