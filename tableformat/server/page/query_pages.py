"""The SQL box, and results as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from starlette.responses import Response

from tableformat.display import text
from tableformat.display.rows import Rows, python_values
from tableformat.engines.attachment import quoted
from tableformat.metadata.identifiers import identifier_parts, identifier_text
from tableformat.server.page.page_context import PageContext
from tableformat.server.page.page_request import PageRequest
from tableformat.server.page.query_limits import QueryOutcome

_CELLS_MAX: Final = 50_000
"""Cells of a result on the page; the CSV file has all."""
_CELL_CHARACTERS: Final = 500
"""Characters of a cell on the page; the CSV file has all."""
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def query_form(page: PageContext, request: PageRequest) -> Response:
    """The empty SQL box, or with a query for a table."""
    page.queries.prepare()
    name = request.query.get("name")
    sql = f"SELECT *\nFROM {_path(name)}\nLIMIT 100" if name else ""
    return _sql_page(page, request, sql, None)


def run_query(page: PageContext, request: PageRequest) -> Response:
    """The result of the query in the form, as a page or as a CSV file."""
    sql = request.form.get("sql", "")
    outcome = page.queries.run(request.session.id, sql)
    page.queries.prepare()
    if request.form.get("as") == "csv" and not outcome.problem:
        headers = {"Content-Disposition": 'attachment; filename="result.csv"', "Cache-Control": "no-store"}
        return Response(csv_text(outcome), media_type="text/csv", headers=headers)
    return _sql_page(page, request, sql, outcome)


def csv_text(outcome: QueryOutcome) -> str:
    """The rows as CSV (RFC 4180). Text that a spreadsheet would take for a formula begins with an apostrophe."""
    rows = outcome.rows
    columns = [[_csv_cell(value) for value in python_values(column)] for column in rows.columns]
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow([_without_formula(name) for name in rows.column_names])
    writer.writerows(zip(*columns, strict=True))
    return written.getvalue()


def _sql_page(page: PageContext, request: PageRequest, sql: str, outcome: QueryOutcome | None) -> Response:
    has_rows = outcome is not None and not outcome.problem
    rows = _shown_rows(outcome) if outcome is not None and has_rows else None
    values = {
        "sql": sql,
        "outcome": outcome,
        "rows": rows,
        "cut": _cut,
        "limits": page.queries.limits,
        "row_count": outcome.rows.num_rows if outcome is not None and has_rows else 0,
    }
    return page.page("sql.html", request, values, 400 if outcome is not None and outcome.problem else 200)


def _shown_rows(outcome: QueryOutcome) -> Rows:
    rows: pa.Table = outcome.rows
    limit = max(1, _CELLS_MAX // max(1, rows.num_columns))
    return Rows.of(rows.slice(0, limit), outcome.types)


def _cut(cell: str) -> str:
    return cell if len(cell) <= _CELL_CHARACTERS else f"{cell[: _CELL_CHARACTERS - 1]}…"


def _csv_cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return _without_formula(value)
        case int() | float():
            return text.cell(value)
        case _:
            return _without_formula(text.cell(value))


def _without_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA_STARTS) else cell


def _path(identifier: str) -> str:
    parts: Sequence[str] = identifier_parts(identifier)
    return f"{quoted(identifier_text(parts[:-1]))}.{quoted(parts[-1])}"
