"""`layers`: the files of a snapshot as a drawing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from tableformat.cli.options import AsOfOption, BranchOption, SnapshotOption, TableArgument, TagOption
from tableformat.cli.session import Session, view_of

_WIDTH: Final = 100
"""Line width for a file or a pipe, unless COLUMNS is set."""


def layers(
    context: typer.Context,
    table: TableArgument,
    *,
    column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The column of the horizontal axis. Default: the first range or key column."),
    ] = None,
    even: Annotated[bool, typer.Option("--even", help="Draw values at equal distances, not to scale.")] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", "-o", metavar="FILE.svg", help="Write a drawing instead of text.")
    ] = None,
    snapshot: SnapshotOption = None,
    as_of: AsOfOption = None,
    tag: TagOption = None,
    branch: BranchOption = None,
) -> None:
    """Draw a table: column values on the x axis, sequence numbers on the y axis, data files and deletes as spans.

    Reads metadata only. Range partitions are a ruler below, with gaps between declared ranges.

    Example: tableformat layers shop.orders --column order --svg orders.svg
    """
    from rich.text import Text

    from tableformat.display.summary import name_of
    from tableformat.snapshot_layers.layers import layers_of

    if svg is not None and svg.suffix != ".svg":
        raise typer.BadParameter(f"{svg} is not an .svg file.", param_hint="--svg")
    session = Session.of(context)
    handle = session.table(table, branch)
    view = view_of(handle, snapshot_id=snapshot, as_of=as_of, tag=tag, branch=branch)
    found = layers_of(view, name_of(handle), handle.branch, column=column, to_scale=not even)

    def document() -> dict[str, Any]:
        return {**found.to_dict(), "svg": None if svg is None else str(svg)}

    if svg is not None:
        svg.write_text(found.svg(), encoding="utf-8")
    if svg is None or session.output.is_json:
        session.output.emit(document, lambda: Text(found.text(width=_width())))


def _width() -> int:
    stated = os.environ.get("COLUMNS", "")
    is_known = sys.stdout.isatty() or stated.isdigit()
    return max(40, shutil.get_terminal_size().columns) if is_known else _WIDTH
