"""Explains a scan plan, as text and as a dict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from pyiceberg.expressions import AlwaysTrue

from tableformat.filters.filter_text import filter_text
from tableformat.markup import figures, html
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.scan.measures import StepMeasures
from tableformat.scan.plan import ScanPlan

LISTED_FILES: Final = 20
"""The number of files that the text lists for each kind of coverage; `to_dict` has all."""
STEP_COLUMNS: Final = ("step", "time", "files", "rows", "size")


@dataclass(frozen=True, slots=True)
class AppliedDelete:
    """A delete file that is opened to read a data file."""

    kind: str
    file_path: str
    sequence_number: int | None


@dataclass(frozen=True, slots=True)
class FileExplanation:
    """One data file of a scan."""

    verdict: str
    """clean: no delete applies; partial: a part of the rows is deleted; covered: every row is deleted, and the file is
    not read."""
    file_path: str
    sequence_number: int | None
    record_count: int
    file_size_bytes: int
    reasons: tuple[str, ...]
    residual: str | None
    """The part of the filter that rows have to be checked with; None if metadata shows that all rows match."""
    deletes: tuple[AppliedDelete, ...]


@dataclass(frozen=True, slots=True)
class RetiredExplanation:
    """A retired range in which rows may match the filter; it is not read."""

    ranges: str
    tag: str
    """Its rows are read with it."""
    retired_at: str | None
    """ISO 8601 in UTC."""

    def __str__(self) -> str:
        when = "" if self.retired_at is None else f" at {self.retired_at}"
        return f"{self.ranges} was retired{when} and is not read; the tag {self.tag!r} keeps its rows"


@dataclass(frozen=True, slots=True)
class ScanExplanation:
    """The files of a scan and the reasons for reading them; `str()` is the report."""

    snapshot_id: int | None
    where: str
    files: tuple[FileExplanation, ...]
    pruning: dict[str, int]
    delete_file_counts: dict[str, int]
    """The delete files to open, by kind."""
    steps: tuple[StepMeasures, ...] = ()
    """The measures of each step, if the scan was run."""
    retired: tuple[RetiredExplanation, ...] = ()
    """RP-30: retired ranges that are not read."""

    def of_verdict(self, verdict: str) -> list[FileExplanation]:
        """The files that are clean, partial or covered."""
        return [file for file in self.files if file.verdict == verdict]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_report(self))

    def _repr_html_(self) -> str:
        opened = ", ".join(f"{count:,} {kind}" for kind, count in self.delete_file_counts.items())
        verdicts = Counter(file.verdict for file in self.files)
        counts = ", ".join(f"{verdicts[verdict]:,} {verdict}" for verdict in ("clean", "partial", "covered"))
        told = [
            ("snapshot", self.snapshot_id or "none"),
            ("where", self.where),
            ("data files", counts),
            ("ruled out", _ruled_out(self.pruning)),
            ("delete files to open", opened or "none"),
            *(("retired", str(each)) for each in self.retired),
        ]
        rows = [
            (file.verdict, figures.count(file.record_count), figures.size(file.file_size_bytes), *_why(file))
            for file in self.files
        ]
        columns = ("verdict", "rows", "size", "data file", "why")
        parts = [html.facts(told), html.grid(columns, rows, numbers=columns[1:3])]
        if self.steps:
            parts.insert(
                1, html.grid(STEP_COLUMNS, [step_cells(step) for step in self.steps], numbers=STEP_COLUMNS[1:])
            )
        return html.fragment("scan, explained", *parts)


def explain_plan(
    plan: ScanPlan, steps: tuple[StepMeasures, ...] = (), retired: tuple[RetiredExplanation, ...] = ()
) -> ScanExplanation:
    """The explanation of a plan, with the measures of its steps if it was run. Reads nothing."""
    covered = (_explain_covered(file) for file in plan.covered)
    return ScanExplanation(
        snapshot_id=plan.snapshot_id,
        where=filter_text(plan.where),
        files=(*(_explain_task(task) for task in plan.tasks), *covered),
        pruning=asdict(plan.pruning),
        delete_file_counts={kind.value: count for kind, count in plan.delete_file_counts.items()},
        steps=steps,
        retired=retired,
    )


def step_cells(step: StepMeasures) -> tuple[str, str, str, str, str]:
    """A row of the table of steps, in the order of `STEP_COLUMNS`."""
    numbers = figures.count(step.file_count), figures.count(step.row_count), figures.size(step.size_bytes)
    return step.step, figures.seconds(step.seconds), *numbers


def _ruled_out(pruning: dict[str, int]) -> str:
    by_partition, by_bounds = pruning["skipped_by_partition_count"], pruning["skipped_by_bounds_count"]
    by_filters = pruning["skipped_by_bloom_filter_count"]
    manifests = (
        f"{pruning['skipped_data_manifest_count']:,} of {pruning['data_manifest_count']:,} manifests with their files"
    )
    told = f"{manifests}; of files {by_partition:,} by partition, {by_bounds:,} by column bounds"
    return f"{told}, {by_filters:,} by Bloom filters" if by_filters else told


def _by_filters(counts: dict[str, int]) -> str:
    count = counts["skipped_by_bloom_filter_count"]
    return f"{count} by Bloom filters, " if count else ""


def _why(file: FileExplanation) -> tuple[str, str]:
    kinds = Counter(delete.kind for delete in file.deletes)
    opened = [f"opens {count:,} {kind}" for kind, count in kinds.items()]
    return file.file_path.rpartition("/")[2], "; ".join((*file.reasons, *opened))


def _explain_task(task: FileScanTask) -> FileExplanation:
    data = task.data_file
    return FileExplanation(
        verdict="partial" if task.has_deletes else "clean",
        file_path=data.file_path,
        sequence_number=data.sequence_number,
        record_count=data.record_count,
        file_size_bytes=data.file_size_bytes,
        reasons=task.reasons,
        residual=None if isinstance(task.residual, AlwaysTrue) else filter_text(task.residual),
        deletes=tuple(_applied(delete) for delete in task.delete_files),
    )


def _explain_covered(data: DataFile) -> FileExplanation:
    return FileExplanation(
        verdict="covered",
        file_path=data.file_path,
        sequence_number=data.sequence_number,
        record_count=data.record_count,
        file_size_bytes=data.file_size_bytes,
        reasons=("newer deleted key ranges cover all its keys",),
        residual=None,
        deletes=(),
    )


def _applied(delete: DeleteFile) -> AppliedDelete:
    return AppliedDelete(delete.kind.value, delete.file_path, delete.sequence_number)


def _report(explanation: ScanExplanation) -> Iterator[str]:
    counts = explanation.pruning
    snapshot = "a table without snapshots" if explanation.snapshot_id is None else f"snapshot {explanation.snapshot_id}"
    yield f"Scan of {snapshot}, where {explanation.where}"
    yield (
        f"  manifests   {counts['data_manifest_count']} of data, "
        f"{counts['skipped_data_manifest_count']} of them ruled out by partition or key; "
        f"{counts['delete_manifest_count']} of deletes, {counts['skipped_delete_manifest_count']} of them not needed"
    )
    covered = explanation.of_verdict("covered")
    read = [file for file in explanation.files if file.verdict != "covered"]
    yield (
        f"  data files  {counts['data_file_count']} in the manifests read: "
        f"{counts['skipped_by_partition_count']} ruled out by partition, "
        f"{counts['skipped_by_bounds_count']} by column bounds, "
        f"{_by_filters(counts)}{len(covered)} covered by range deletes, {len(read)} to read"
    )
    row_count = sum(file.record_count for file in read)
    size_bytes = sum(file.file_size_bytes for file in read)
    yield f"  to read     {row_count:,} rows before deletes and filter, {size_bytes:,} bytes"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(explanation.delete_file_counts.items()))
    yield (
        f"  deletes     {counts['delete_file_count']} delete files seen, "
        f"{counts['skipped_delete_file_count']} cannot matter; to open: {kinds or 'none'}"
    )
    for each in explanation.retired:
        yield f"  retired     {each}"
    if explanation.steps:
        yield f"  {'step':<18}{'time':>10}{'files':>10}{'rows':>14}{'size':>10}"
    for step in explanation.steps:
        name, seconds, files, rows, size = step_cells(step)
        yield f"  {name:<18}{seconds:>10}{files:>10}{rows:>14}{size:>10}"
    for verdict in ("clean", "partial", "covered"):
        yield from _listed(verdict, explanation.of_verdict(verdict))


def _listed(verdict: str, files: list[FileExplanation]) -> Iterator[str]:
    if not files:
        return
    yield f"  {verdict} ({len(files)})"
    for file in files[:LISTED_FILES]:
        yield f"    {file.file_path}  {file.record_count:,} rows, sequence number {file.sequence_number}"
        for reason in file.reasons:
            yield f"      {reason}"
        if file.residual is not None:
            yield f"      rows are filtered by {file.residual}"
        for delete in file.deletes[:LISTED_FILES]:
            yield f"      {delete.kind} {delete.file_path}, sequence number {delete.sequence_number}"
    if len(files) > LISTED_FILES:
        yield f"    and {len(files) - LISTED_FILES} more"
