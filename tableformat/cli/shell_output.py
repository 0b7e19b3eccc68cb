"""Prints the result of a statement of the shell: as a table, as CSV or as JSON."""

from __future__ import annotations

import shutil
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from tableformat.cli.output import Output, OutputFormat

if TYPE_CHECKING:
    from tableformat.cli.sql_run import SqlResult

_TABLE_ROWS: Final = 1_000
"""Rows that are printed as a table: its columns are as wide as their widest value, so all rows are held."""


class Mode(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def print_result(output: Output, result: SqlResult, mode: Mode, *, is_paged: bool) -> None:
    """Print the rows. A table that is longer than the screen goes through a pager at a prompt."""
    from tableformat.cli.row_formats import row_lines
    from tableformat.cli.row_output import print_rows

    if mode is Mode.CSV:
        output.write(*row_lines(OutputFormat.CSV, result.rows, result.names))
    elif mode is Mode.JSON:
        print_rows(Output(OutputFormat.JSON), result.rows, result.names, result.types)
    elif result.is_plan:
        output.write(*result.plan_lines())
    else:
        _print_table(output, result, is_paged=is_paged)
    output.flush()


def _print_table(output: Output, result: SqlResult, *, is_paged: bool) -> None:
    import pyarrow as pa

    from tableformat.cli.output import console
    from tableformat.display.rows import Rows

    rows = pa.Table.from_batches(list(result.rows.up_to(_TABLE_ROWS)), schema=result.rows.schema)
    drawn = Rows.of(rows.rename_columns(result.names), result.types)
    if is_paged and rows.num_rows > shutil.get_terminal_size().lines - 4:
        at = console(sys.stdout)
        with at.pager(styles=False):
            at.print(drawn, crop=False)
    else:
        output.emit(dict, lambda: drawn)
    if not rows.num_rows:
        output.note("No rows.")
    if result.rows.is_truncated:
        output.note(f"The first {_TABLE_ROWS:,} rows; .mode csv and .mode json print all.")
