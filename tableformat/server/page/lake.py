"""The first page, with the tables of the catalog, and the page of a namespace."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.responses import Response

from tableformat.errors import NamespaceNotFoundError, TableFormatError
from tableformat.metadata.identifiers import identifier_parts, identifier_text
from tableformat.server.page.page_context import PageContext
from tableformat.server.page.page_request import PageRequest
from tableformat.server.page.paging import Listed, listed
from tableformat.table import Table


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table in a list, from its metadata file only."""

    identifier: str
    label: str
    """The name without its namespace."""
    row_count: int | None = None
    """Rows in data files, before deletes. None if the head's writer did not state it."""
    data_file_count: int | None = None
    delete_file_count: int | None = None
    total_bytes: int | None = None
    age_seconds: float | None = None
    """Since the last commit."""
    problem: str = ""
    """Why the table cannot be read."""


def overview(page: PageContext, request: PageRequest) -> Response:
    """All namespaces, and a page of the tables in them."""
    heads = page.server.catalog.heads()
    wanted = request.query.get("find", "")
    namespaces = page.server.catalog.list_namespaces(recursive=True)
    found = [
        (namespace, identifier)
        for namespace in namespaces
        for identifier in heads.list_tables(namespace)
        if wanted.casefold() in identifier.casefold()
    ]
    shown = listed(found, request.page_number)
    groups: dict[str, list[TableRow]] = {}
    if not wanted:
        with_tables = {namespace for namespace, _ in found}
        groups = {each: [] for each in namespaces if request.page_number == 1 and each not in with_tables}
    for namespace, identifier in shown.items:
        groups.setdefault(namespace, []).append(_row(identifier, heads.load))
    values = {"groups": sorted(groups.items()), "shown": shown, "find": wanted}
    return page.page("lake.html", request, values)


def namespace(page: PageContext, request: PageRequest) -> Response:
    """One namespace: its tables, namespaces, views and properties."""
    catalog, name = page.server.catalog, request.table
    if not catalog.namespace_exists(name):
        raise NamespaceNotFoundError(f"no namespace {name!r:.200}.")
    heads = catalog.heads()
    shown: Listed[str] = listed(heads.list_tables(name), request.page_number)
    properties = catalog.iceberg.load_namespace_properties(identifier_parts(name))
    values = {
        "name": name,
        "tables": [_row(identifier, heads.load) for identifier in shown.items],
        "shown": shown,
        "nested": catalog.list_namespaces(name),
        "views": catalog.list_views(name),
        "properties": sorted((key, value) for key, value in properties.items() if key != "exists"),
    }
    return page.page("namespace.html", request, values)


def _row(identifier: str, load: Callable[[str], Table]) -> TableRow:
    """LK-2: a table that cannot be read is listed with the reason."""
    label = identifier_text(identifier_parts(identifier)[-1:])
    try:
        metadata = load(identifier).metadata
    except (TableFormatError, OSError, ValueError) as error:
        return TableRow(identifier, label, problem=str(error))
    head = metadata.current_snapshot()
    summary = {} if head is None or head.summary is None else head.summary.additional_properties
    return TableRow(
        identifier,
        label,
        row_count=_number(summary, "total-records"),
        data_file_count=_number(summary, "total-data-files"),
        delete_file_count=_number(summary, "total-delete-files"),
        total_bytes=_number(summary, "total-files-size"),
        age_seconds=None if head is None else max(time.time() - head.timestamp_ms / 1_000, 0),
    )


def _number(summary: Mapping[str, str], name: str) -> int | None:
    text = summary.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() else None
