"""Renders results of operations and jobs as sentences, also as plain data."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from tableformat.display import text
from tableformat.display.grid import facts
from tableformat.maintenance.conversion.convert_deletes import ConvertResult
from tableformat.operations.staging.result import CommitResult

_UNTOLD = ("refused", "estimate")


def commit_dict(result: CommitResult) -> dict[str, Any]:
    """The figures of a commit. Refused rows are only counted."""
    figures = {field.name: getattr(result, field.name) for field in fields(result) if field.name not in _UNTOLD}
    return {**figures, "refused_row_count": 0 if result.refused is None else result.refused.num_rows}


def commit_text(result: CommitResult) -> str:
    """One sentence: the committed changes, those that a dry run found, or that nothing was committed."""
    if result.already_applied:
        return "This batch was already committed; nothing was changed."
    stale = f"{text.counted(result.stale_row_count, 'stale row')} skipped" if result.stale_row_count else ""
    if result.dry_run:
        return (
            f"Dry run: {text.counted(result.deleted_row_count or 0, 'row')} would be deleted and "
            f"{text.counted(result.added_row_count, 'row')} added{', ' if stale else ''}{stale}; nothing was changed."
        )
    if result.written_bytes == 0:
        return f"Nothing to change; {stale + '; ' if stale else ''}no snapshot was created."
    changes = []
    if result.added_row_count:
        changes.append(f"{text.counted(result.added_row_count, 'row')} added")
    if result.deleted_row_count:
        changes.append(f"{text.counted(result.deleted_row_count, 'row')} deleted")
    if result.added_delete_files_count:
        changes.append(f"{text.counted(result.added_delete_files_count, 'delete file')} added")
    if stale:
        changes.append(stale)
    elif result.deleted_row_count is None:
        changes.append("no row read")
    tries = f" after {result.attempts} attempts" if result.attempts > 1 else ""
    return (
        f"Snapshot {result.snapshot_id}: {', '.join(changes) or 'no rows changed'}, {text.size(result.written_bytes)} "
        f"written in {text.seconds(result.duration_seconds)}{tries}."
    )


def _row_deletes(position_delete_file_count: int, deletion_vector_count: int) -> str:
    """Version 2 has position delete files, version 3 has vectors, and an upgraded table has both."""
    if deletion_vector_count == 0:
        return f"{position_delete_file_count:,} position"
    files = f"{position_delete_file_count:,} position, " if position_delete_file_count else ""
    return f"{files}{deletion_vector_count:,} deletion vectors"


def render_conversion(result: ConvertResult, name: str) -> RenderableType:
    """The result of a conversion, also of a dry run."""
    converted = result.removed_equality_delete_files_count + result.removed_range_delete_files_count
    if converted == 0:
        return Text(f"{name} has no equality or range deletes: nothing to convert.")
    title = "Dry run: this is what the conversion would do; nothing was written." if result.dry_run else "Converted."
    removed = (
        f"{result.removed_equality_delete_files_count:,} equality, {result.removed_range_delete_files_count:,} range, "
        f"{_row_deletes(result.removed_position_delete_files_count, result.removed_deletion_vectors_count)}"
    )
    added = _row_deletes(result.added_position_delete_files_count, result.added_deletion_vectors_count)
    rows: list[tuple[str, str | Text]] = [
        ("delete files out", removed),
        ("delete files in", added),
        ("rows", f"{text.count(result.deleted_row_count)} newly deleted by position"),
        (
            "data files",
            f"{result.resolved_data_files_count:,} searched, {result.clean_data_files_count:,} ruled out by bounds, "
            f"{result.removed_data_files_count:,} without live rows removed",
        ),
    ]
    if not result.dry_run:
        rows.append(("written", f"{text.size(result.rewritten_bytes)} of position deletes; no data file"))
        rows.append(("snapshot", str(result.snapshot_id)))
    rows.append(("time", text.seconds(result.duration_seconds)))
    return Group(Text(title, style="bold"), facts(rows))
