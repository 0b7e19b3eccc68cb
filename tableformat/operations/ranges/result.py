"""`RangePartitionsResult`: the result of a change of range partitions."""

from __future__ import annotations

from dataclasses import dataclass

from tableformat.markup.results import HtmlResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RangePartitionsResult(HtmlResult):
    """The result of one change of range partitions, or its expected result (`dry_run`)."""

    snapshot_id: int | None = None
    """The snapshot of the change; None for a change without a snapshot, such as adding and splitting."""
    added: tuple[str, ...] = ()
    """New ranges, as text."""
    dropped: tuple[str, ...] = ()
    """Dropped partitions, as text."""
    removed_data_files_count: int = 0
    """Number of data files that lay completely inside the dropped ranges; none was opened."""
    removed_row_count: int = 0
    """Number of rows in those files, not counting deletes."""
    removed_bytes: int = 0
    straddling_data_files_count: int = 0
    """Number of data files with rows on both sides of a border. Their rows are deleted by one range delete."""
    uncovered_data_files_count: int = 0
    """Number of data files that may have rows outside all ranges, for a table that had no range partitions before."""
    added_delete_files_count: int = 0
    restored_data_files_count: int = 0
    tag: str | None = None
    """The tag that keeps the ranges that `retire` removed."""
    attempts: int = 0
    dry_run: bool = False
