"""`delete-prefix`, `delete-range` and `delete-ranges`: deletes by key that read no rows, and their dry runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tableformat.cli.options import (
    ApplicationOption,
    BatchOption,
    DryRunOption,
    UnchangedOption,
    WritableTableArgument,
    batch_of,
    names_of,
)
from tableformat.cli.session import Session

if TYPE_CHECKING:
    import pyarrow as pa

    from tableformat.deletes.spans.spans import SpanArray
    from tableformat.operations.options import CommitKeywords
    from tableformat.operations.staging.result import CommitResult
    from tableformat.table import Table

WriteBranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="Delete on this branch instead of main.")
]


MetadataOnlyOption = Annotated[
    bool,
    typer.Option(
        "--metadata-only",
        help="With --dry-run: report the maximum number of files and rows from metadata, without reading data.",
    ),
]


def delete_prefix(
    context: typer.Context,
    table: WritableTableArgument,
    prefix: Annotated[
        list[str] | None,
        typer.Argument(metavar="COLUMN=VALUE...", help="Values of the leading key columns, such as id1=A id2=3."),
    ] = None,
    *,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Delete every prefix in this file instead: Parquet, CSV, or JSON with one row per line.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    metadata_only: MetadataOnlyOption = False,
    branch: WriteBranchOption = None,
    application_id: ApplicationOption = None,
    batch_id: BatchOption = None,
    if_unchanged_since: UnchangedOption = None,
) -> None:
    """Delete every row whose key begins with the given values. No existing data is read.

    Example: tableformat delete-prefix shop.orders customer=ann order=3 --dry-run
    """
    from tableformat.deletes.spans.spans import spans_of_prefixes
    from tableformat.keys.key_columns import KeyColumns
    from tableformat.operations.staging.draft import Draft
    from tableformat.operations.verbs.delete_prefix import prefix_table

    if bool(prefix) == (source is not None):
        raise typer.BadParameter("pass COLUMN=VALUE or --from FILE.")
    batch = _commit_of(application_id, batch_id, if_unchanged_since, dry_run=dry_run, metadata_only=metadata_only)
    texts = assignments(prefix or [])
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    values, what = values_given(handle, texts) if source is None else _values_of_file(handle, source)
    if metadata_only:
        _estimate(session, handle, handle.delete_prefix(values, dry_run="metadata"), what)
    elif dry_run:
        draft = Draft(handle.iceberg, handle.branch)
        key = KeyColumns.of(draft.schema, draft.key_field_ids)
        _preview(session, handle, spans_of_prefixes(key, prefix_table(draft, values)), what)
    else:
        _delete(session, handle, lambda: handle.delete_prefix(values, **batch), what)


def values_given(table: Table, texts: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The values of a prefix, and the prefix as text."""
    from tableformat.display.text import literal
    from tableformat.keys.value_text import parse_value

    schema = table.iceberg.schema()
    values = {name: parse_value(text, name, schema, where=table.name) for name, text in texts.items()}
    return values, ", ".join(f"{name} = {literal(value)}" for name, value in values.items())


def _values_of_file(table: Table, path: Path) -> tuple[pa.Table, str]:
    """All prefixes of a file, and their number as text."""
    from tableformat.cli.load import rows_of_files, unreadable_is_refused
    from tableformat.display.text import counted
    from tableformat.write.rows.rows import as_reader

    with unreadable_is_refused([path]):
        prefixes = as_reader(rows_of_files([path], table.schema), what=str(path)).read_all()
    return prefixes, f"the {counted(prefixes.num_rows, 'key')} of {path}"


def delete_range(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    lower: Annotated[
        str | None, typer.Option(metavar="VALUE", help=r"The first value to delete; open without it. \N is null.")
    ] = None,
    upper: Annotated[
        str | None, typer.Option(metavar="VALUE", help="The first value to keep; open without it.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="The columns of the bounds, in order; default the key. Bounds of several: 'A,3'."
        ),
    ] = None,
    dry_run: DryRunOption = False,
    metadata_only: MetadataOnlyOption = False,
    branch: WriteBranchOption = None,
    application_id: ApplicationOption = None,
    batch_id: BatchOption = None,
    if_unchanged_since: UnchangedOption = None,
) -> None:
    """Delete the rows from one value (included) to another (excluded). No existing data is read. An open side includes
    nulls.

    Example: tableformat delete-range shop.orders --on customer,order --lower ann,1 --upper ann,100
    """
    from tableformat.deletes.spans.spans import span_of_bounds
    from tableformat.keys.value_text import parse_tuple
    from tableformat.operations.staging.draft import Draft
    from tableformat.operations.verbs.delete_range import range_columns

    if lower is None and upper is None:
        raise typer.BadParameter("pass --lower, --upper or both; without them, every row would be deleted.")
    batch = _commit_of(application_id, batch_id, if_unchanged_since, dry_run=dry_run, metadata_only=metadata_only)
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    draft = Draft(handle.iceberg, handle.branch)
    key = range_columns(draft, names_of(on))
    bounds = [
        None if text is None else parse_tuple(text, key.names, draft.schema, where=handle.name)
        for text in (lower, upper)
    ]
    what = _range_text(key.names, bounds[0], bounds[1])
    lower_bound, upper_bound = bounds
    if metadata_only:
        found = handle.delete_range(lower=lower_bound, upper=upper_bound, on=key.names, dry_run="metadata")
        _estimate(session, handle, found, what)
    elif dry_run:
        _preview(session, handle, span_of_bounds(key, lower_bound, upper_bound), what)
    else:
        _delete(
            session,
            handle,
            lambda: handle.delete_range(lower=lower_bound, upper=upper_bound, on=key.names, **batch),
            what,
        )


def delete_ranges(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="FILE",
            help=(
                "One row for each range, with columns lower_A and upper_A: Parquet, CSV, or JSON with one row per line."
            ),
            exists=True,
            dir_okay=False,
        ),
    ],
    dry_run: DryRunOption = False,
    metadata_only: MetadataOnlyOption = False,
    branch: WriteBranchOption = None,
    application_id: ApplicationOption = None,
    batch_id: BatchOption = None,
    if_unchanged_since: UnchangedOption = None,
) -> None:
    """Delete the ranges of a file in one snapshot. No existing data is read. Lower bounds are included, upper bounds
    are not.

    Example: tableformat delete-ranges shop.orders --from cutoffs.csv
    """
    import pyarrow as pa

    from tableformat.cli.load import rows_of_files
    from tableformat.display.text import counted
    from tableformat.operations.staging.draft import Draft
    from tableformat.operations.verbs.delete_ranges import spans_of_ranges
    from tableformat.write.rows.rows import as_reader

    commit = _commit_of(application_id, batch_id, if_unchanged_since, dry_run=dry_run, metadata_only=metadata_only)
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    types = pa.schema(
        [pa.field(f"{side}_{field.name}", field.type) for side in ("lower", "upper") for field in handle.schema]
    )
    ranges = as_reader(rows_of_files([source], types), what=str(source)).read_all()
    what = f"the {counted(ranges.num_rows, 'range')} of {source}"
    if metadata_only:
        _estimate(session, handle, handle.delete_ranges(ranges, dry_run="metadata"), what)
    elif dry_run:
        _preview(session, handle, spans_of_ranges(Draft(handle.iceberg, handle.branch), ranges), what)
    else:
        _delete(session, handle, lambda: handle.delete_ranges(ranges, **commit), what)


def _commit_of(
    application_id: str | None,
    batch_id: str | None,
    if_unchanged_since: int | None,
    *,
    dry_run: bool,
    metadata_only: bool,
) -> CommitKeywords:
    if metadata_only and not dry_run:
        raise typer.BadParameter("--metadata-only requires --dry-run.")
    if dry_run and if_unchanged_since is not None:
        raise typer.BadParameter("--if-unchanged-since is checked only at a commit: omit it with --dry-run.")
    return batch_of(application_id, batch_id, if_unchanged_since)


def _delete(session: Session, table: Table, verb: Callable[[], CommitResult], what: str) -> None:
    from rich.text import Text

    from tableformat.display.results import commit_dict, commit_text

    before = table.snapshot_id
    result = verb()
    deleted = [] if result.already_applied else [f"{table.name}: deleted {what}."]
    lines = [*deleted, commit_text(result)]
    if before is not None and result.snapshot_id != before:
        undo = f"rollback {shlex.quote(table.name)} {before}"
        lines.append(f"Undo: {session.command(undo, branch=table.branch)}")
    session.output.emit(
        lambda: {"table": table.name, "dry_run": False, "previous_snapshot_id": before, **commit_dict(result)},
        lambda: Text("\n".join(lines)),
    )


def _estimate(session: Session, table: Table, result: CommitResult, what: str) -> None:
    from rich.console import Group
    from rich.text import Text

    from tableformat.display.grid import facts
    from tableformat.display.text import counted, size

    estimate = result.estimate
    assert estimate is not None, "of a dry run from metadata"
    rows: list[tuple[str, str | Text]] = [
        ("would delete", f"{counted(estimate.row_count_max, 'row')} at most, with {what}"),
        ("data files", f"{estimate.data_files_count:,} of {size(estimate.data_bytes)}, none opened"),
    ]
    title = Text(f"{table.name}: dry run, nothing was changed.", style="bold")
    session.output.emit(
        lambda: {"table": table.name, "dry_run": True, "snapshot_id": result.snapshot_id, **asdict(estimate)},
        lambda: Group(title, facts(rows)),
    )


def _preview(session: Session, table: Table, spans: SpanArray, what: str) -> None:
    from rich.console import Group
    from rich.text import Text

    from tableformat.display.grid import facts
    from tableformat.display.text import counted
    from tableformat.operations.row_lookup.covered_rows import preview_delete

    preview = preview_delete(table.view, spans)

    def document() -> dict[str, Any]:
        return {"table": table.name, "dry_run": True, **asdict(preview)}

    files = (
        f"{preview.covered_data_files_count:,} fully covered, {preview.partial_data_files_count:,} partly, "
        f"{preview.clean_data_files_count:,} unaffected"
    )
    rows: list[tuple[str, str | Text]] = [
        ("would delete", f"{counted(preview.live_row_count, 'row')} with {what}"),
        ("data files", files),
    ]
    title = Text(f"{table.name}: dry run, nothing was changed.", style="bold")
    session.output.emit(document, lambda: Group(title, facts(rows)))


def _range_text(names: tuple[str, ...], lower: tuple[Any, ...] | None, upper: tuple[Any, ...] | None) -> str:
    """`2026-01-01 <= ts < 2026-02-01`, `(id1, id2, num_cal) < (B, 3)`."""
    from tableformat.display.text import literal

    def bound_text(bound: tuple[Any, ...]) -> str:
        values = ", ".join(literal(value) for value in bound)
        return values if len(names) == 1 else f"({values})"

    columns = names[0] if len(names) == 1 else f"({', '.join(names)})"
    return (
        (f"{bound_text(lower)} <= " if lower is not None else "")
        + columns
        + (f" < {bound_text(upper)}" if upper is not None else "")
    )


def assignments(texts: list[str]) -> dict[str, str]:
    """`id1=A` as name and text. Anything else is a usage error."""
    values: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not (name and separator):
            raise typer.BadParameter(f"{text!r} is not COLUMN=VALUE.")
        if name in values:
            raise typer.BadParameter(f"column {name!r} occurs twice.")
        values[name] = value
    return values
