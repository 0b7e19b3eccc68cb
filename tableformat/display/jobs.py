"""Renders results of maintenance jobs, also as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from tableformat.display import text
from tableformat.display.compaction_groups import plan_dict, render_compaction
from tableformat.display.grid import Column, facts, grid
from tableformat.display.results import render_conversion
from tableformat.maintenance.apply_retention import ApplyRetentionResult
from tableformat.maintenance.compaction.compact import CompactResult
from tableformat.maintenance.compaction.compaction_plan import CompactionPlan
from tableformat.maintenance.conversion.convert_deletes import ConvertResult
from tableformat.maintenance.delete_files.drop_dead_deletes import DropDeadDeletesResult
from tableformat.maintenance.delete_files.merge_range_deletes import MergeRangeDeletesResult
from tableformat.maintenance.delete_files.rewrite_position_deletes import RewritePositionDeleteFilesResult
from tableformat.maintenance.erasure.certificate import ErasureCertificate, TableErasure
from tableformat.maintenance.expiry.expire_snapshots import ExpireResult
from tableformat.maintenance.expiry.remove_orphan_files import RemoveOrphanFilesResult
from tableformat.maintenance.publish import PublishResult
from tableformat.maintenance.rewrite_manifests import RewriteManifestsResult
from tableformat.maintenance.run_jobs import JobStatus, RunResult
from tableformat.maintenance.statistics.compute_table_stats import ComputeTableStatsResult

_LISTED = 20
"""Maximum number of displayed locations; JSON has all of them."""
_STATUS_STYLES = {
    JobStatus.DONE: "green",
    JobStatus.SKIPPED: "dim",
    JobStatus.OUT_OF_TIME: "yellow",
    JobStatus.FAILED: "red",
}
Rows: TypeAlias = list[tuple[str, str | Text]]


def result_dict(result: Any) -> dict[str, Any]:
    """The fields of a job's result for JSON."""
    return {field.name: _plain(getattr(result, field.name)) for field in fields(result)}


def _plain(value: Any) -> Any:
    if isinstance(value, CompactionPlan):
        return plan_dict(value)
    if is_dataclass(value):
        return result_dict(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def render_job(result: Any, name: str) -> RenderableType:
    """The result of a job on the table of that name, also of a dry run."""
    return _RENDERED[type(result)](result, name)


def _page(result: Any, name: str, done: str, rows: Rows) -> RenderableType:
    title = f"{name}: dry run, nothing was changed." if result.dry_run else f"{name}: {done}."
    return Group(Text(title, style="bold"), facts([*rows, ("time", text.seconds(result.duration_seconds))]))


def _dropped(result: DropDeadDeletesResult, name: str) -> RenderableType:
    if not result.proofs:
        return Text(f"{name}: every delete file may match a row; nothing to drop.")
    kinds = (
        ("position delete file", result.removed_position_delete_files_count),
        ("deletion vector", result.removed_deletion_vectors_count),
        ("equality delete file", result.removed_equality_delete_files_count),
        ("range delete file", result.removed_range_delete_files_count),
    )
    out = ", ".join(text.counted(number, noun) for noun, number in kinds if number)
    columns = [Column("delete file", wraps=True), Column("why it matches nothing", wraps=True)]
    proofs = [(location.rpartition("/")[2], proof) for location, proof in result.proofs[:_LISTED]]
    page = _page(result, name, "dropped dead deletes", [("out", f"{out}, {text.size(result.removed_bytes)}")])
    return Group(page, Text(), grid(columns, proofs), *_and_more(len(result.proofs)))


def _retained(result: ApplyRetentionResult, name: str) -> RenderableType:
    if not result.rules:
        return Text(f"{name}: the table keeps all rows; set the property tableformat.retain.")
    columns = [Column("rule", wraps=True), Column("before"), Column("data files", is_number=True)]
    columns.append(Column("rows at most", is_number=True))
    rules = [
        (each.rule, each.cutoff, text.count(each.data_files_count), text.count(each.row_count_max))
        for each in result.rules
    ]
    files = text.counted(result.added_delete_files_count, "delete file")
    page = _page(result, name, "retention applied", [] if result.dry_run else [("written", files)])
    return Group(page, Text(), grid(columns, rules))


def _merged(result: MergeRangeDeletesResult, name: str) -> RenderableType:
    if not result.removed_range_delete_files_count:
        return Text(f"{name}: the number of range delete files is already minimal; nothing to merge.")
    files = f"{result.removed_range_delete_files_count:,} became {result.added_range_delete_files_count:,}"
    spans = f"{result.removed_spans_count:,} became {result.added_spans_count:,}"
    return _page(result, name, "range deletes merged", [("range delete files", files), ("spans", spans)])


def _position_deletes(result: RewritePositionDeleteFilesResult, name: str) -> RenderableType:
    if not result.rewritten_delete_files_count:
        return Text(f"{name}: position deletes are already compact; nothing to rewrite.")
    files = f"{result.rewritten_delete_files_count:,} became {result.added_delete_files_count:,}"
    size = f"{text.size(result.rewritten_bytes)} before"
    return _page(result, name, "position deletes rewritten", [("files", files), ("size", size)])


def _counted(result: ComputeTableStatsResult, name: str) -> RenderableType:
    if result.snapshot_id is None:
        return Text(f"{name}: no snapshot yet; nothing to count.")
    counts = result.distinct_counts or (None,) * len(result.columns)
    told: Rows = [
        (column, "to be counted" if count is None else f"{count:,}")
        for column, count in zip(result.columns, counts, strict=True)
    ]
    return _page(result, name, "distinct values counted", told)


def _manifests(result: RewriteManifestsResult, name: str) -> RenderableType:
    if not result.rewritten_manifests_count:
        return Text(f"{name}: manifests are in order; nothing to rewrite.")
    told = f"{result.rewritten_manifests_count:,} became {result.added_manifests_count:,}"
    return _page(result, name, "manifests rewritten", [("manifests", told)])


def _published(result: PublishResult, name: str) -> RenderableType:
    if result.snapshot_id == result.previous_snapshot_id and not result.dry_run:
        return Text(f"{name}: {result.target} already has all of {result.source}; nothing to publish.")
    deletes = (
        f"{result.removed_equality_delete_files_count:,} equality and {result.removed_range_delete_files_count:,} "
        f"range delete files; {text.counted(result.converted_rows_count, 'row')} deleted"
    )
    rows: Rows = [("converted", deletes)]
    if result.carried_data_files_count:
        files = text.counted(result.carried_data_files_count, "data file")
        carried = f"{files} with {text.counted(result.carried_records_count, 'row')} appended to {result.target}"
        rows.append(("carried over", carried))
    moved = f"{result.target}: {result.previous_snapshot_id or 'new'} -> {result.snapshot_id}"
    return _page(result, name, f"{result.source} published", rows if result.dry_run else [*rows, ("moved", moved)])


def _expired(result: ExpireResult, name: str) -> RenderableType:
    if not (result.expired_snapshots_count or result.removed_refs or result.forgotten_batches_count):
        return Text(f"{name}: no snapshot is old enough; nothing to expire.")
    return _page(result, name, "snapshots expired", [*expiry_rows(result), *_left_behind(result)])


def expiry_rows(result: ExpireResult) -> Rows:
    """The removed snapshots, references and files."""
    counts = (
        ("data", result.deleted_data_files_count),
        ("position delete", result.deleted_position_delete_files_count),
        ("equality delete", result.deleted_equality_delete_files_count),
        ("range delete", result.deleted_range_delete_files_count),
        ("manifest", result.deleted_manifest_files_count),
        ("manifest list", result.deleted_manifest_lists_count),
        ("statistics", result.deleted_statistics_files_count),
    )
    files = ", ".join(f"{number:,} {kind}" for kind, number in counts if number)
    rows: Rows = [("snapshots", text.count(result.expired_snapshots_count))]
    if result.removed_refs:
        rows.append(("branches and tags", ", ".join(result.removed_refs)))
    return [*rows, ("files", f"{files or 'none'}; {text.size(result.freed_bytes)} freed")]


def _removed(result: RemoveOrphanFilesResult, name: str) -> RenderableType:
    rows: Rows = [("checked", text.counted(result.listed_files_count, "file"))]
    if result.recent_files_count:
        recent = text.counted(result.recent_files_count, "file")
        rows.append(("too young", f"{recent} without a reference may belong to a pending commit"))
    if result.ignored_entries:
        rows.append(("not the table's", ", ".join(result.ignored_entries[:_LISTED])))
    locations = result.orphan_file_locations
    rows.append(("orphans", f"{text.counted(len(locations), 'file')} of {text.size(result.freed_bytes)}"))
    page = _page(result, name, "orphan files removed", [*rows, *_left_behind(result)])
    if not locations:
        return page
    listed = Text("\n".join(locations[:_LISTED]), overflow="fold")
    return Group(page, Text(), listed, *_and_more(len(locations)))


def _left_behind(result: ExpireResult | RemoveOrphanFilesResult) -> Rows:
    rows: Rows = []
    if count := len(result.undeleted_file_locations):
        told = f"{text.counted(count, 'file')} could not be removed from storage; remove-orphan-files tries again"
        rows.append(("not removed", Text(told, style="yellow")))
    if count := len(result.foreign_file_locations):
        told = f"{text.counted(count, 'file')} outside the table's directories were kept; --output json lists them"
        rows.append(("foreign", Text(told, style="yellow")))
    return rows


def _and_more(count: int) -> Sequence[RenderableType]:
    return [Text(f"and {count - _LISTED:,} more; --output json lists all")] if count > _LISTED else []


def _ran(result: RunResult, name: str) -> RenderableType:
    columns = [Column("job"), Column("state"), Column("time", is_number=True), Column("what", wraps=True)]
    rows = [
        (
            report.job.replace("_", "-"),
            Text(report.status.value, style=_STATUS_STYLES[report.status]),
            text.seconds(report.duration_seconds) if report.status is not JobStatus.SKIPPED else "",
            report.reason or text.told_figures(report.result),
        )
        for report in result.jobs
    ]
    title = f"{name}: dry run, nothing was changed." if result.dry_run else f"{name}: maintained."
    end = f"{text.size(result.rewritten_bytes)} rewritten in {text.seconds(result.duration_seconds)}."
    return Group(Text(title, style="bold"), Text(), grid(columns, rows), Text(), Text(end))


def erasure_dict(certificate: ErasureCertificate) -> dict[str, Any]:
    """The certificate for JSON."""
    return certificate.to_dict()


def render_erasure(certificate: ErasureCertificate) -> RenderableType:
    """A certificate of all its tables."""
    parts = [_erased(certificate, each) for each in certificate.tables]
    if certificate.dry_run:
        return Group(*parts)
    if certificate.is_complete:
        return Group(*parts, Text(), Text("Everything was read again: nothing of it is left.", style="bold green"))
    return Group(*parts, Text(), Text("The erasure is not complete.", style="bold red"))


def _erased(certificate: ErasureCertificate, table: TableErasure) -> RenderableType:
    done = "dry run, nothing was changed" if certificate.dry_run else "erased"
    verb = "have them" if certificate.dry_run else "written again"
    rows: Rows = [
        ("rows", text.count(table.erased_rows_count)),
        ("data files", f"{len(table.rewritten_data_files):,} {verb}"),
        ("snapshots", f"{table.rewritten_snapshots_count:,} of {table.snapshots_count:,} have other files now"),
        ("delete files", f"{len(table.rewritten_delete_files):,} written again"),
        ("removed", text.counted(len(table.removed_files), "file")),
        ("read again", text.counted(table.read_data_files_count + table.read_delete_files_count, "file")),
    ]
    page: list[RenderableType] = [
        Text(f"{table.table}: {done}.", style="bold"),
        facts(rows[:2] if certificate.dry_run else rows),
    ]
    if table.not_reached:
        columns = [Column("not reached", wraps=True), Column("why", wraps=True)]
        left = [(each.location, each.reason) for each in table.not_reached[:_LISTED]]
        page += [Text(), grid(columns, left), *_and_more(len(table.not_reached))]
    return Group(*page)


_RENDERED: dict[type, Callable[[Any, str], RenderableType]] = {
    ApplyRetentionResult: _retained,
    CompactResult: render_compaction,
    ConvertResult: render_conversion,
    DropDeadDeletesResult: _dropped,
    MergeRangeDeletesResult: _merged,
    RewriteManifestsResult: _manifests,
    ComputeTableStatsResult: _counted,
    RewritePositionDeleteFilesResult: _position_deletes,
    PublishResult: _published,
    ExpireResult: _expired,
    RemoveOrphanFilesResult: _removed,
    RunResult: _ran,
}
