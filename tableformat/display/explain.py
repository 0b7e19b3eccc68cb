"""Renders `Scan.explain()`: the reduction from live files to files read, the measures of the steps, then each file with
its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from tableformat.display import text
from tableformat.display.grid import QUIET_STYLE, Column, facts, grid
from tableformat.scan.explain import LISTED_FILES, STEP_COLUMNS, FileExplanation, ScanExplanation, step_cells

_STYLES: Final = {"clean": "green", "partial": "yellow", "covered": "cyan"}


def render_explanation(explanation: ScanExplanation, *, title: str, location: str) -> RenderableType:
    """`title` describes the scan in the user's words; paths are relative to `location`."""
    parts: list[RenderableType] = [Text(title, style="bold"), facts(_funnel(explanation))]
    if explanation.steps:
        columns = [Column(name, is_number=place > 0) for place, name in enumerate(STEP_COLUMNS)]
        parts += [Text(), grid(columns, [list(step_cells(step)) for step in explanation.steps])]
    if explanation.files:
        parts += [Text(), _files(explanation.files[:LISTED_FILES], location)]
    if len(explanation.files) > LISTED_FILES:
        left = len(explanation.files) - LISTED_FILES
        parts.append(Text(f"and {text.counted(left, 'more file')}; --output json lists all.", QUIET_STYLE))
    return Group(*parts)


def _funnel(explanation: ScanExplanation) -> list[tuple[str, str | Text]]:
    counts = explanation.pruning
    covered = explanation.of_verdict("covered")
    read = [file for file in explanation.files if file.verdict != "covered"]
    ruled_out = (
        (counts["skipped_by_partition_count"], "ruled out by partition"),
        (counts["skipped_by_bounds_count"], "by column bounds"),
        (counts["skipped_by_bloom_filter_count"], "by Bloom filters"),
        (len(covered), "covered by range deletes"),
    )
    pruned = ", ".join(f"{number:,} {reason}" for number, reason in ruled_out if number) or "none ruled out"
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(explanation.delete_file_counts.items()))
    rows = sum(file.record_count for file in read)
    data_bytes = sum(file.file_size_bytes for file in read)
    snapshot = "none yet" if explanation.snapshot_id is None else str(explanation.snapshot_id)
    return [
        ("snapshot", snapshot),
        ("manifests", _manifests(counts)),
        ("data files", f"{counts['data_file_count']:,} in the manifests read, {pruned}"),
        (
            "to read",
            f"{text.counted(len(read), 'file')}, {text.counted(rows, 'row')} before deletes, {text.size(data_bytes)}",
        ),
        ("deletes", f"{counts['delete_file_count']:,} seen, {counts['skipped_delete_file_count']:,} cannot matter"),
        ("to open", kinds or "no delete file"),
        *(("retired", str(each)) for each in explanation.retired),
    ]


def _manifests(counts: dict[str, int]) -> str:
    return (
        f"{counts['data_manifest_count']:,} of data ({counts['skipped_data_manifest_count']:,} ruled out), "
        f"{counts['delete_manifest_count']:,} of deletes ({counts['skipped_delete_manifest_count']:,} not needed)"
    )


def _files(files: Sequence[FileExplanation], location: str) -> RenderableType:
    columns = [
        Column("verdict"),
        Column("rows", is_number=True),
        Column("size", is_number=True),
        Column("sequence", is_number=True),
        Column("data file, and why", wraps=True),
    ]
    return grid(columns, [_file(file, location) for file in files])


def _file(file: FileExplanation, location: str) -> list[str | Text]:
    why = Text(text.relative(file.file_path, location))
    for reason in file.reasons:
        why.append(f"\n  {reason}", style=QUIET_STYLE)
    for delete in file.deletes[:LISTED_FILES]:
        name = delete.file_path.rpartition("/")[2]
        why.append(f"\n  {delete.kind}, sequence {delete.sequence_number}: {name}", style=QUIET_STYLE)
    if len(file.deletes) > LISTED_FILES:
        why.append(f"\n  and {len(file.deletes) - LISTED_FILES} more", style=QUIET_STYLE)
    return [
        Text(file.verdict, style=_STYLES.get(file.verdict, "")),
        text.count(file.record_count),
        text.size(file.file_size_bytes),
        "" if file.sequence_number is None else str(file.sequence_number),
        why,
    ]
