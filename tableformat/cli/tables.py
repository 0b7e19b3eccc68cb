"""`ls`, `show`, `history`, `files`, `deletes`: describe tables by their metadata only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tableformat.cli.options import AsOfOption, BranchOption, SnapshotOption, TableArgument, TagOption
from tableformat.cli.session import Session, view_of

if TYPE_CHECKING:
    from tableformat.catalogs.catalog import Catalog
    from tableformat.display.summary import TableSummary


def ls(
    context: typer.Context,
    namespace: Annotated[str | None, typer.Argument(metavar="NAMESPACE", help="Only this namespace.")] = None,
    *,
    long: Annotated[bool, typer.Option("--long", "-l", help="Also the rows, files and sizes of each table.")] = False,
) -> None:
    """List the tables of the catalog.

    Example: tableformat ls shop --long
    """
    from tableformat.display.listing import render_names, render_summaries

    session = Session.of(context)
    with session.catalog() as catalog:
        namespaces, identifiers = _listed(catalog, namespace)
        summaries = _summaries(session, catalog, identifiers) if long else {}

    def document() -> dict[str, Any]:
        tables: list[dict[str, Any]] = [{"identifier": identifier} for identifier in identifiers]
        for table in tables:
            if table["identifier"] in summaries:
                table.update(summaries[table["identifier"]].to_dict())
        return {"namespaces": namespaces, "tables": tables}

    if not identifiers and not session.output.is_json:
        session.output.note(f"No tables in {namespace or 'the catalog'}.")
        return
    session.output.emit(
        document, lambda: render_summaries([*summaries.values()]) if long else render_names(identifiers)
    )
    if long and len(summaries) < len(identifiers):
        raise typer.Exit(1)


def _summaries(session: Session, catalog: Catalog, identifiers: list[str]) -> dict[str, TableSummary]:
    """LK-2: a table that cannot be read is reported, and the others are listed."""
    from tableformat.display.summary import summarize
    from tableformat.errors import TableFormatError

    summaries = {}
    for identifier in identifiers:
        try:
            summaries[identifier] = summarize(catalog.load_table(identifier))
        except TableFormatError as error:
            session.output.error(error, f"{identifier}: {error}")
    return summaries


def show(
    context: typer.Context,
    table: TableArgument,
    *,
    snapshot: SnapshotOption = None,
    as_of: AsOfOption = None,
    tag: TagOption = None,
    branch: BranchOption = None,
) -> None:
    """Show a table: schema, key, partitions, snapshot, rows, files, deletes, tags, properties.

    Example: tableformat show shop.orders --tag before-audit
    """
    from tableformat.display.summary import render_summary, summarize

    session = Session.of(context)
    handle = session.table(table, branch)
    summary = summarize(handle, view_of(handle, snapshot_id=snapshot, as_of=as_of, tag=tag, branch=branch))
    session.output.emit(summary.to_dict, lambda: render_summary(summary))


def history(
    context: typer.Context,
    table: TableArgument,
    *,
    branch: BranchOption = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Only the newest snapshots.")] = None,
) -> None:
    """List the snapshots of a table, newest first.

    Example: tableformat history shop.orders --limit 10
    """
    from tableformat.display.history import history_of, render_history
    from tableformat.display.summary import name_of

    session = Session.of(context)
    handle = session.table(table, branch)
    entries = history_of(handle)[:limit]
    session.output.emit(
        lambda: {
            "table": name_of(handle),
            "branch": handle.branch,
            "snapshots": [entry.to_dict() for entry in entries],
        },
        lambda: render_history(entries),
    )


def files(
    context: typer.Context,
    table: TableArgument,
    *,
    snapshot: SnapshotOption = None,
    as_of: AsOfOption = None,
    tag: TagOption = None,
    branch: BranchOption = None,
) -> None:
    """List the data files of a table.

    Example: tableformat files shop.orders
    """
    from tableformat.display.files import file_entries, render_files
    from tableformat.display.summary import name_of
    from tableformat.metadata.metadata_tables import data_files_table

    session = Session.of(context)
    handle = session.table(table, branch)
    view = view_of(handle, snapshot_id=snapshot, as_of=as_of, tag=tag, branch=branch)
    entries = file_entries(data_files_table(view), view.metadata)
    if not entries and not session.output.is_json:
        session.output.note(f"{name_of(handle)} has no data files.")
        return
    session.output.emit(
        lambda: {
            "table": name_of(handle),
            "location": handle.location,
            "files": [entry.to_dict() for entry in entries],
        },
        lambda: render_files(entries, handle.location),
    )


def deletes(
    context: typer.Context,
    table: TableArgument,
    *,
    of: Annotated[
        str | None,
        typer.Option(
            "--of",
            metavar="PATH",
            help="Only delete files for this data file: its path or the end of it, as `files` lists it.",
        ),
    ] = None,
    snapshot: SnapshotOption = None,
    as_of: AsOfOption = None,
    tag: TagOption = None,
    branch: BranchOption = None,
) -> None:
    """List the delete files of a table, oldest first, and the rows that they delete.

    Example: tableformat deletes shop.orders
    """
    from tableformat.display.files import DeleteListing, delete_entries, path_that_ends
    from tableformat.display.summary import name_of
    from tableformat.operations.inspect import Inspect

    session = Session.of(context)
    handle = session.table(table, branch)
    view = view_of(handle, snapshot_id=snapshot, as_of=as_of, tag=tag, branch=branch)
    inspect = Inspect(view, handle.branch, handle.iceberg.metadata_location)
    path = None if of is None else path_that_ends(of, inspect.data_files()["file_path"].to_pylist())
    entries = delete_entries(inspect.delete_files() if path is None else inspect.deletes_of(path), handle.metadata)
    if not entries and not session.output.is_json:
        session.output.note(f"{path or name_of(handle)} has no delete files.")
        return
    session.output.emit(
        lambda: {
            "table": name_of(handle),
            "location": handle.location,
            "data_file": path,
            "delete_files": [entry.to_dict() for entry in entries],
        },
        lambda: DeleteListing(entries, handle.location),
    )


def _listed(catalog: Catalog, namespace: str | None) -> tuple[list[str], list[str]]:
    """Namespaces and the identifiers of their tables. Raises NamespaceNotFoundError with the nearest name."""
    from tableformat.errors import NamespaceNotFoundError, nearest_hint

    namespaces = catalog.list_namespaces(recursive=True)
    if namespace is not None:
        if not catalog.namespace_exists(namespace):
            raise NamespaceNotFoundError(f"no namespace {namespace!r}.{nearest_hint(namespace, namespaces)}")
        namespaces = [namespace]
    return namespaces, [identifier for name in namespaces for identifier in catalog.list_tables(name)]
