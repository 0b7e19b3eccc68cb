"""Rows as CSV, as JSON lines and as a Markdown table, written while they arrive."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, assert_never

from tableformat.cli.output import OutputFormat

if TYPE_CHECKING:
    import pyarrow as pa


def row_lines(output: OutputFormat, batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[str]:
    """The lines of a format that has only rows. The values are those of the JSON output."""
    match output:
        case OutputFormat.CSV:
            return _lines(batches, names, head=[names], line=_csv_line)
        case OutputFormat.MARKDOWN:
            return _lines(batches, names, head=[names, ["---"] * len(names)], line=_markdown_line)
        case OutputFormat.NDJSON:
            return _json_lines(batches, names)
        case OutputFormat.TEXT | OutputFormat.JSON:
            raise AssertionError(f"{output} is a document, not lines")
        case _:
            assert_never(output)


def _lines(
    batches: Iterable[pa.RecordBatch],
    names: Sequence[str],
    *,
    head: Sequence[Sequence[str]],
    line: Callable[[Sequence[Any]], str],
) -> Iterator[str]:
    from tableformat.cli.json_values import json_rows

    yield from map(line, head)
    for batch in batches:
        for row in json_rows(batch, names):
            yield line([_cell(value) for value in row.values()])


def _json_lines(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[str]:
    from tableformat.cli.json_values import json_rows

    for batch in batches:
        for row in json_rows(batch, names):
            yield json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _csv_line(cells: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _markdown_line(cells: Sequence[Any]) -> str:
    texts = (str(cell).replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>") for cell in cells)
    return f"| {' | '.join(texts)} |\n"


def _cell(value: Any) -> Any:
    """Null is an empty cell; lists and structs are JSON."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list() | dict():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return value
