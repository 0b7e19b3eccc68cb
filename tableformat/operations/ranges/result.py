"""`RangePartitionsResult`: what a change of range partitions did."""

from __future__ import annotations

from dataclasses import dataclass

from tableformat.markup.results import HtmlResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RangePartitionsResult(HtmlResult):
    """One change of what exists, or what it would do (`dry_run`)."""

    snapshot_id: int | None = None
    """The snapshot of the change; None where it made none, as adding and splitting do."""
    added: tuple[str, ...] = ()
    """Ranges that exist now, as text."""
    dropped: tuple[str, ...] = ()
    """Partitions that do not exist any more."""
    removed_data_files_count: int = 0
    """Data files that lay inside of what was dropped; none was opened."""
    removed_row_count: int = 0
    """Rows in them, before deletes."""
    removed_bytes: int = 0
    straddling_data_files_count: int = 0
    """Data files with rows on both sides of a border: their rows are deleted by one range delete."""
    uncovered_data_files_count: int = 0
    """Data files that may have rows which nothing covers, of a table that had no range partitions before."""
    added_delete_files_count: int = 0
    restored_data_files_count: int = 0
    tag: str | None = None
    """The tag that keeps what `retire` took away."""
    attempts: int = 0
    dry_run: bool = False
