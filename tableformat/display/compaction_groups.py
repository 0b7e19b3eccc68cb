"""Renders the plan and the result of a compaction, also as plain data."""

from __future__ import annotations

from typing import Any

from pyiceberg.table.metadata import TableMetadata
from rich.console import Group, RenderableType
from rich.text import Text

from tableformat.display import text
from tableformat.display.files import partition_text
from tableformat.display.grid import Column, facts, grid
from tableformat.maintenance.compaction.compact import CompactResult
from tableformat.maintenance.compaction.compaction_plan import CompactionGroup, CompactionPlan, GroupKind
from tableformat.metadata.partition_column import partition_column

_KIND_STYLES = {GroupKind.DROP: "red", GroupKind.FOLD: "yellow", GroupKind.MERGE: "cyan"}


def plan_dict(plan: CompactionPlan) -> dict[str, Any]:
    """The groups with their cost and savings. `saved_per_byte` is null if nothing is rewritten."""
    groups = plan.to_arrow().to_pylist()
    for group in groups:
        group["saved_per_byte"] = group["saved_per_byte"] if group["rewritten_bytes"] else None
    return {
        "snapshot_id": plan.snapshot_id,
        "data_file_count": plan.data_file_count,
        "rewritten_data_files_count": plan.rewritten_data_files_count,
        "rewritten_bytes": plan.rewritten_bytes,
        "left_out_group_count": len(plan.left_out),
        "groups": groups,
    }


def render_plan(result: CompactResult, metadata: TableMetadata, name: str, command: str) -> RenderableType:
    """The groups of a dry run in the order of their rewrite, with reasons."""
    plan, removed = result.plan, _removed(result)
    assert plan is not None, "a dry run has a plan"
    if not plan.groups:
        why = _left_out(plan) if plan.left_out else f"{text.counted(plan.data_file_count, 'data file')} checked."
        dead = f"\n{removed} would be dropped: {command}" if removed else ""
        return Text(f"{name}: nothing to compact; {why}{dead}")
    partitions = _partition_texts(plan, metadata)
    columns = [
        Column("do"),
        *([Column("partition", wraps=True)] if any(partitions) else []),
        Column("files", is_number=True),
        Column("read", is_number=True),
        Column("rows", is_number=True),
        Column("deleted", is_number=True),
        Column("saves", is_number=True),
        Column("because", wraps=True),
    ]
    rows = [
        _group_row(group, [partition] if any(partitions) else [])
        for group, partition in zip(plan.groups, partitions, strict=True)
    ]
    outputs = sum(group.output_file_count for group in plan.groups)
    told = [
        f"{text.counted(plan.rewritten_data_files_count, 'data file')} of {plan.data_file_count:,} would become "
        f"{outputs:,}, reading {text.size(plan.rewritten_bytes)}.",
        *([_left_out(plan)] if plan.left_out else []),
        *([f"{removed} would be dropped."] if removed else []),
        "`saves` is the reduction of read cost per rewritten byte.",
        f"To run it: {command}",
    ]
    title = Text(f"{name}: dry run, nothing was changed.", style="bold")
    return Group(title, Text(), grid(columns, rows), Text(), Text("\n".join(told)))


def render_compaction(result: CompactResult, name: str) -> RenderableType:
    """The result of a compaction."""
    removed = _removed(result)
    if not (result.group_count or result.failed_group_count or removed or result.not_dropped_because):
        return Text(f"{name}: nothing to compact.")
    rows: list[tuple[str, str | Text]] = [
        ("data files", f"{result.rewritten_data_files_count:,} became {result.added_data_files_count:,}"),
        ("bytes", f"{text.size(result.rewritten_bytes)} read, {text.size(result.written_bytes)} written"),
        ("rows", f"{text.count(result.deleted_row_count)} deleted ones dropped"),
        ("deletes dropped", removed or "none"),
        ("commits", f"{result.commit_count:,}, of {text.counted(result.group_count, 'group')}"),
    ]
    if result.failed_group_count:
        gave_up = f"{text.counted(result.failed_group_count, 'group')} conflicted with other commits; run it again"
        rows.append(("not committed", Text(gave_up, style="yellow")))
    if result.not_dropped_because:
        rows.append(("dead deletes kept", Text(result.not_dropped_because, style="yellow")))
    rows += [("snapshot", str(result.snapshot_id)), ("time", text.seconds(result.duration_seconds))]
    return Group(Text(f"{name}: compacted.", style="bold"), facts(rows))


def _group_row(group: CompactionGroup, partition: list[str]) -> list[str | Text]:
    gain = f"{group.saved_per_byte:.2f}" if group.rewritten_bytes else ""
    return [
        Text(group.kind.value, style=_KIND_STYLES[group.kind]),
        *partition,
        f"{len(group.tasks):,} -> {group.output_file_count:,}",
        text.size(group.rewritten_bytes),
        text.count(group.row_count),
        text.count(group.deleted_row_count),
        gain,
        "; ".join(group.reasons),
    ]


def _partition_texts(plan: CompactionPlan, metadata: TableMetadata) -> list[str]:
    """The partition of each group; empty text without a partition."""
    column = partition_column(metadata, [group.data_files[0] for group in plan.groups])
    values = [None] * len(plan.groups) if column is None else column.to_pylist()
    specs = [metadata.specs()[group.spec_id] for group in plan.groups]
    return [partition_text(spec, each) for spec, each in zip(specs, values, strict=True)]


def _left_out(plan: CompactionPlan) -> str:
    size = text.size(sum(group.rewritten_bytes for group in plan.left_out))
    return f"{text.counted(len(plan.left_out), 'more group')} of {size} omitted because of --max-rewritten-bytes."


def _removed(result: CompactResult) -> str:
    """The delete files that were removed, or would be; empty for none."""
    kinds = (
        ("position delete file", result.removed_position_delete_files_count),
        ("deletion vector", result.removed_deletion_vectors_count),
        ("equality delete file", result.removed_equality_delete_files_count),
        ("range delete file", result.removed_range_delete_files_count),
    )
    return ", ".join(text.counted(number, noun) for noun, number in kinds if number)
