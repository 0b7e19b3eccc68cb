"""`TableHealth`: the causes of slow reads of a table, in numbers, with findings (MT-20)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

from tableformat.markup import figures, html


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFileCounts:
    """The live delete files of one kind."""

    kind: str
    """position, deletion-vector, equality or range."""
    file_count: int
    total_bytes: int
    deleted_count: int
    """Rows, keys or spans in the files, as stated in their entries."""
    oldest_age_seconds: float | None
    """Age of the oldest commit; a lower bound if its snapshot has expired, None if no snapshot is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupDepth:
    """The number of data files that a point lookup by key opens, by their bounds alone."""

    average: float
    """The average over keys that are distributed like the rows."""
    largest: int
    """The number for the worst key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding with a recommended action."""

    name: str
    """small-files, deleted-rows, overlap, uncovered-rows, straddling-files, overdue-window, overdue-retention,
    unknown-retention, keyed-deletes, range-delete-files, dead-deletes, manifests, snapshots, added-arrow-types."""
    what: str
    """One sentence with the numbers."""
    command: str
    """The command to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth:
    """The state of one snapshot of a branch, with a text display."""

    table: str
    branch: str
    snapshot_id: int | None
    data_file_count: int
    data_bytes: int
    record_count: int
    """Rows in the data files, including deleted rows."""
    small_file_count: int
    """Files below three quarters of the target size, if there are several in a partition."""
    deleted_row_ratio: float
    """Rows that position deletes and vectors name, and rows of covered files, as a share of all rows."""
    clean_file_count: int
    """Data files that no delete reaches."""
    position_deleted_file_count: int
    """Data files with position deletes only. Readers do not compare their keys."""
    partial_file_count: int
    """Data files whose keys are compared with equality or range deletes in every read."""
    covered_file_count: int
    """Data files that are fully covered by range deletes: not read, but still in the table."""
    lookup_depth: LookupDepth | None
    """None for a table without a key, or without data."""
    delete_files: tuple[DeleteFileCounts, ...]
    dead_delete_file_count: int
    """Delete files that no longer match a row."""
    read_amplification: float
    """Current cost of reading the whole snapshot, as a multiple of its cost after conversion and compaction. The cost
    is the bytes of data and delete files, plus the cost of opening each file (`read.split.open-file-cost`)."""
    manifest_count: int
    """Manifests with live files, which planning a scan reads."""
    manifest_bytes: int
    snapshot_count: int
    """Retained snapshots of the table, in all branches."""
    metadata_bytes: int
    """Size of the metadata file, which each commit writes again."""
    findings: tuple[Finding, ...] = ()

    @property
    def clean_file_share(self) -> float:
        """Share of the data files that are read without a comparison of keys; 1.0 without data."""
        clean = self.clean_file_count + self.position_deleted_file_count
        return clean / self.data_file_count if self.data_file_count else 1.0

    def to_dict(self) -> dict[str, Any]:
        """All numbers as JSON-compatible data."""
        return {**dataclasses.asdict(self), "clean_file_share": self.clean_file_share}

    def __str__(self) -> str:
        lines = [
            f"{self.table} (branch {self.branch}, snapshot {self.snapshot_id})",
            f"  read amplification   {self.read_amplification:.2f}",
            f"  data files           {self.data_file_count:,} of {_megabytes(self.data_bytes)}, {self.record_count:,} "
            f"rows, {self.small_file_count:,} small",
            f"  deleted rows         {self.deleted_row_ratio:.1%} named by position or in covered files",
            f"  how files read       {self.clean_file_count:,} clean, {self.position_deleted_file_count:,} with "
            f"deleted positions, {self.partial_file_count:,} partial, {self.covered_file_count:,} covered",
        ]
        if self.lookup_depth is not None:
            depth = self.lookup_depth
            lines.append(f"  a key lookup opens   {depth.average:.1f} files on average, {depth.largest:,} at most")
        lines += [f"  {f'{each.kind} deletes':<21}{_describe(each)}" for each in self.delete_files]
        lines.append(
            f"  metadata             {self.snapshot_count:,} snapshots, {_megabytes(self.metadata_bytes)} metadata "
            f"file, {self.manifest_count:,} manifests of {_megabytes(self.manifest_bytes)}"
        )
        if not self.findings:
            return "\n".join([*lines, "nothing to do"])
        lines.append("to do")
        for finding in self.findings:
            lines += [f"  {finding.what}", f"      {finding.command}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        where = "" if self.branch == "main" else f", branch {self.branch}"
        return html.fragment(f"Health of {self.table}{where}", html_of_health(self))


_GREEN: Final = "#4c9f70"
_YELLOW: Final = "#d9902f"
_RED: Final = "#d65f5f"


def html_of_health(health: TableHealth) -> html.Html:
    """HTML display of a table's health: read cost now and after the jobs, how files are read, and recommended
    commands."""
    return html.part(
        _amplification(health),
        html.facts(_figures(health)),
        _how_files_read(health),
        _to_do(health.findings),
    )


def _amplification(health: TableHealth) -> html.Html:
    """Bars on one scale. The cost after conversion and compaction is the unit, 1."""
    now = health.read_amplification
    colour = _GREEN if now <= 1.5 else _YELLOW if now <= 3 else _RED
    rows = [
        ("current", f"{now:.2f}", html.bar(1.0, colour)),
        ("converted and compacted", "1.00", html.bar(1.0 / now, _GREEN)),
    ]
    return html.grid(("read amplification", "times", ""), rows, numbers=("times",))


def _figures(health: TableHealth) -> list[tuple[str, object]]:
    deletes = (f"{each.file_count:,} {each.kind}, {figures.size(each.total_bytes)}" for each in health.delete_files)
    told: list[tuple[str, object]] = [
        (
            "data files",
            f"{health.data_file_count:,}, {figures.size(health.data_bytes)}, {health.small_file_count:,} small",
        ),
        ("rows", f"{health.record_count:,}, {health.deleted_row_ratio:.1%} deleted by position or in covered files"),
        ("delete files", "; ".join(deletes) or "none"),
    ]
    if health.lookup_depth is not None:
        depth = health.lookup_depth
        told.append(("a key lookup opens", f"{depth.average:.1f} files on average, {depth.largest:,} at most"))
    return told


def _how_files_read(health: TableHealth) -> html.Html:
    states = (
        ("clean", health.clean_file_count, _GREEN),
        ("positions deleted", health.position_deleted_file_count, "#4c8dd6"),
        ("keys compared", health.partial_file_count, _YELLOW),
        ("dead weight", health.covered_file_count, _RED),
    )
    of_all = max(1, health.data_file_count)
    rows = [(name, figures.count(count), html.bar(count / of_all, colour)) for name, count, colour in states]
    return html.grid(("how data files read", "files", ""), rows, numbers=("files",))


def _to_do(findings: tuple[Finding, ...]) -> html.Html:
    if not findings:
        return html.line("Nothing to do.")
    return html.headed("To do", *(html.part(html.line(f"{each.what}:"), html.code(each.command)) for each in findings))


def _describe(counts: DeleteFileCounts) -> str:
    age = "" if counts.oldest_age_seconds is None else f", oldest {counts.oldest_age_seconds / 3600:,.1f} h old"
    return f"{counts.file_count:,} files of {_megabytes(counts.total_bytes)}, {counts.deleted_count:,} entries{age}"


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1_000_000:,.3f} MB"
