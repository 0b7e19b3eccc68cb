"""The pages of one table: overview, schema, history, files, deletes, partitions, properties, plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from starlette.responses import Response

from tableformat.display import text
from tableformat.display.files import delete_entries, file_entries, what_text
from tableformat.display.history import change_text, history_of
from tableformat.display.rows import Rows
from tableformat.display.summary import deletes_text, rows_text, summarize
from tableformat.errors import InvalidArgumentError, TableFormatError
from tableformat.maintenance.health.health import html_of_health
from tableformat.maintenance.health.health_findings import table_health
from tableformat.markup import figures, html
from tableformat.metadata.metadata_tables import data_files_table, delete_files_table
from tableformat.properties import RANGE_PARTITIONS
from tableformat.server.page.page_context import PageContext
from tableformat.server.page.page_request import PageRequest
from tableformat.server.page.paging import PAGE_ITEMS, Listed, listed
from tableformat.server.page.rendering import trusted
from tableformat.snapshot_layers import svg
from tableformat.snapshot_layers.layers import layers_of
from tableformat.table import Table

_WHERE_CHARACTERS_MAX: Final = 10_000


def overview(page: PageContext, request: PageRequest) -> Response:
    """The figures of a table, its health, and the picture of its layers."""
    table = table_of(page, request)
    summary, view = summarize(table), table.view
    snapshot = summary.snapshot
    at = "none yet" if snapshot is None else f"{snapshot.snapshot_id}, {snapshot.operation}, {snapshot.committed_at}"
    facts = [
        ("location", summary.location),
        ("format", f"Iceberg v{summary.format_version}"),
        ("key", summary.key_problem or ", ".join(summary.key) or "none"),
        ("partitions", ", ".join(summary.partition_by) or "none"),
        ("snapshot", at),
        ("snapshots", figures.count(summary.snapshot_count)),
        ("rows", rows_text(summary)),
        ("data files", f"{figures.count(summary.data_file_count)}, {figures.size(summary.data_bytes)}"),
        ("delete files", deletes_text(summary.delete_files)),
    ]
    health = table_health(view, table.iceberg.metadata_location, table=summary.name, branch=table.branch)
    values = {
        "facts": facts,
        "refs": summary.refs,
        "health": trusted(html_of_health(health)),
        "layers": trusted(svg.embedded(layers_of(view, summary.name, table.branch).picture)),
    }
    return table_page(page, request, "overview", values)


def schema(page: PageContext, request: PageRequest) -> Response:
    """The columns, the partition spec and the sort order."""
    table = table_of(page, request)
    summary, metadata = summarize(table), table.metadata
    values = {
        "columns": summary.columns,
        "key": summary.key_problem or ", ".join(summary.key) or "none",
        "partition_by": ", ".join(summary.partition_by) or "none",
        "sort_order": _sort_order(metadata) or "none",
        "schema_id": table.view.schema.schema_id,
        "checks": sorted(table.checks.items()),
    }
    return table_page(page, request, "schema", values)


def history(page: PageContext, request: PageRequest) -> Response:
    """The snapshots of the branch, newest first."""
    shown = listed(history_of(table_of(page, request)), request.page_number)
    values = {"shown": shown, "changes": [change_text(entry.summary) for entry in shown.items]}
    return table_page(page, request, "history", values)


def data_files(page: PageContext, request: PageRequest) -> Response:
    """The live data files."""
    table = table_of(page, request)
    files = data_files_table(table.view)
    shown = _slice(files, request)
    entries = file_entries(shown.items, table.metadata)
    rows = [
        (
            text.relative(each.path, table.location),
            each.partition,
            figures.count(each.record_count),
            figures.size(each.size_bytes),
            each.sequence_number,
        )
        for each in entries
    ]
    return table_page(page, request, "files", {"shown": shown, "rows": rows})


def delete_files(page: PageContext, request: PageRequest) -> Response:
    """The live delete files, oldest first, with the rows that they delete."""
    table = table_of(page, request)
    files = delete_files_table(table.view).sort_by([("sequence_number", "ascending"), ("file_path", "ascending")])
    shown = _slice(files, request)
    rows = [
        (
            each.kind,
            what_text(each, table.location),
            figures.count(each.record_count),
            figures.size(each.size_bytes),
            each.sequence_number,
            text.relative(each.path, table.location),
        )
        for each in delete_entries(shown.items, table.metadata)
    ]
    return table_page(page, request, "deletes", {"shown": shown, "rows": rows})


def partitions(page: PageContext, request: PageRequest) -> Response:
    """The declared range partitions, and the partitions of Iceberg."""
    table = table_of(page, request)
    lists: list[tuple[str, str, Listed[Any]]] = []
    if RANGE_PARTITIONS in table.properties:
        ranges = _slice(table.inspect.range_partitions(), request)
        lists.append(("Range partitions", "Declared ranges of the key. Rows outside of them are rejected.", ranges))
    if not table.metadata.spec().is_unpartitioned():
        partitioned = _slice(table.inspect.partitions(), request)
        lists.append(("Partitions", "Rows and files of each partition of Iceberg, before deletes.", partitioned))
    values = {"lists": [(title, what, each, Rows.of(each.items)) for title, what, each in lists]}
    return table_page(page, request, "partitions", values)


def properties(page: PageContext, request: PageRequest) -> Response:
    """The properties of the table."""
    table = table_of(page, request)
    return table_page(page, request, "properties", {"properties": sorted(table.properties.items())})


def plan(page: PageContext, request: PageRequest) -> Response:
    """The files that a scan with a condition reads, and the reasons. No data file is opened."""
    where = request.query.get("where", "").strip()
    table = table_of(page, request)
    explanation, problem = None, ""
    if len(where) > _WHERE_CHARACTERS_MAX:
        raise InvalidArgumentError(f"the condition is longer than {_WHERE_CHARACTERS_MAX:,} characters.")
    try:
        explained = table.scan(where=where or None).explain()
        explanation = trusted(html.unstyled(explained._repr_html_()))
    except (TableFormatError, RecursionError) as error:
        problem = "the condition is nested too deeply." if isinstance(error, RecursionError) else str(error)
    values = {"where": where, "explanation": explanation, "problem": problem}
    return table_page(page, request, "plan", values, 200 if explanation is not None else 400)


def table_of(page: PageContext, request: PageRequest) -> Table:
    """The table that the request names, at its newest snapshot. Raises TableNotFoundError."""
    return page.server.catalog.load_table(request.table, branch=branch_of(request))


def branch_of(request: PageRequest) -> str:
    return request.query.get("branch") or MAIN_BRANCH


def table_page(
    page: PageContext, request: PageRequest, tab: str, values: Mapping[str, Any], status: int = 200
) -> Response:
    """The page of one tab of a table."""
    branch = branch_of(request)
    shared = {"name": request.table, "tab": tab, "branch": "" if branch == MAIN_BRANCH else branch}
    return page.page(f"table_{tab}.html", request, {**shared, **values}, status)


def _slice(rows: pa.Table, request: PageRequest) -> Listed[Any]:
    """One page of the rows of an Arrow table."""
    number = request.page_number
    return Listed(rows.slice((number - 1) * PAGE_ITEMS, PAGE_ITEMS), number, rows.num_rows)


def _sort_order(metadata: TableMetadata) -> str:
    schema = metadata.schema()
    named = (
        (schema.find_column_name(field.source_id) or f"field {field.source_id}", field)
        for field in metadata.sort_order().fields
    )
    return ", ".join(
        f"{name if str(field.transform) == 'identity' else f'{field.transform} of {name}'} "
        f"{field.direction.name} {field.null_order}"
        for name, field in named
    )
