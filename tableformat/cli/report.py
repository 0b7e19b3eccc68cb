"""`report`: one HTML page about a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tableformat.cli.options import BranchOption, TableArgument
from tableformat.cli.session import Session


def report(
    context: typer.Context,
    table: TableArgument,
    *,
    page: Annotated[Path, typer.Option("--page", "-o", metavar="FILE.html", help="The output file.")],
    branch: BranchOption = None,
) -> None:
    """Write a page about a table: health, layers, schema, snapshots, properties. It has no script and needs no network.

    Reads metadata, and range delete files like the planning of a scan.

    Example: tableformat report shop.orders -o orders.html
    """
    from rich.text import Text

    from tableformat.display.report import table_report

    if page.suffix != ".html":
        raise typer.BadParameter(f"{page} is not an .html file.", param_hint="--page")
    session = Session.of(context)
    page.write_text(table_report(session.table(table, branch)), encoding="utf-8")
    session.output.emit(lambda: {"table": table, "page": str(page)}, lambda: Text(f"Wrote {page}."))
