"""Renders the health of a table: figures, how its files are read, and recommended jobs."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from tableformat.display import text
from tableformat.display.command_line import command_line
from tableformat.display.grid import QUIET_STYLE, Column, facts, grid
from tableformat.maintenance.health.health import DeleteFileCounts, TableHealth

_BAR_WIDTH = 40
_AMPLIFICATION_STYLES = ((1.5, "green"), (3.0, "yellow"), (float("inf"), "red"))
"""Style by read amplification: (maximum, style)."""


def render_health(health: TableHealth) -> RenderableType:
    """The whole page. `Finding.command` is displayed unchanged."""
    where = f", branch {health.branch}" if health.branch != "main" else ""
    title = Text.assemble((health.table, "bold"), f"{where}, snapshot {health.snapshot_id or 'none'}")
    parts: list[RenderableType] = [title, Text(), facts(_figures(health))]
    if health.data_file_count:
        parts += [Text(), _how_files_read(health)]
    if health.delete_files:
        parts += [Text(), _deletes(health.delete_files, health.dead_delete_file_count)]
    return Group(*parts, Text(), _to_do(health))


def _figures(health: TableHealth) -> list[tuple[str, str | Text]]:
    style = next(style for at_most, style in _AMPLIFICATION_STYLES if health.read_amplification <= at_most)
    rows: list[tuple[str, str | Text]] = [
        (
            "read amplification",
            Text.assemble(
                (f"{health.read_amplification:.2f}", f"bold {style}"),
                ("  times the cost of the same rows, converted and compacted", QUIET_STYLE),
            ),
        ),
        (
            "data files",
            f"{health.data_file_count:,} of {text.size(health.data_bytes)} together, {health.small_file_count:,} small",
        ),
        (
            "rows",
            f"{health.record_count:,}, {health.deleted_row_ratio:.1%} of them deleted by position or in covered files",
        ),
    ]
    if health.lookup_depth is not None:
        depth = health.lookup_depth
        opened = f"opens {depth.average:.1f} files on average, {text.count(depth.largest)} at most"
        rows.append(("a key lookup", opened))
    metadata = (
        f"{text.counted(health.snapshot_count, 'snapshot')}, {text.counted(health.manifest_count, 'manifest')} of "
        f"{text.size(health.manifest_bytes)}, metadata file of {text.size(health.metadata_bytes)}"
    )
    return [*rows, ("metadata", metadata)]


def _how_files_read(health: TableHealth) -> RenderableType:
    states = (
        ("clean", health.clean_file_count, "green"),
        ("positions deleted", health.position_deleted_file_count, "cyan"),
        ("keys compared", health.partial_file_count, "yellow"),
        ("dead weight", health.covered_file_count, "red"),
    )
    columns = [Column("how data files read"), Column("files", is_number=True), Column("share", is_number=True)]
    rows = []
    for state, file_count, style in states:
        share = file_count / health.data_file_count
        # A share above zero is always visible.
        length = max(round(share * _BAR_WIDTH), 1 if file_count else 0)
        rows.append((state, text.count(file_count), f"{share:.0%}", Text("━" * length, style=style)))
    return grid([*columns, Column("")], rows)


def _deletes(kinds: tuple[DeleteFileCounts, ...], dead_count: int) -> RenderableType:
    columns = [
        Column("delete files"),
        Column("files", is_number=True),
        Column("size", is_number=True),
        Column("entries", is_number=True),
        Column("oldest", is_number=True),
    ]
    rows = [
        (
            each.kind,
            text.count(each.file_count),
            text.size(each.total_bytes),
            text.count(each.deleted_count),
            "" if each.oldest_age_seconds is None else text.age(each.oldest_age_seconds),
        )
        for each in kinds
    ]
    table = grid(columns, rows)
    if not dead_count:
        return table
    return Group(table, Text(f"{dead_count:,} of them no longer match any row", style=QUIET_STYLE))


def _to_do(health: TableHealth) -> RenderableType:
    if not health.findings:
        return Text("Nothing to do.", style="bold green")
    reasons: dict[str, list[str]] = {}
    for finding in health.findings:
        reasons.setdefault(finding.command, []).append(finding.what[0].upper() + finding.what[1:])
    lines: list[RenderableType] = [Text("To do", style="bold")]
    for command, whats in reasons.items():
        lines += (Text(f"- {what}.") for what in whats)
        lines.append(command_line(command))
    return Group(*lines)
