"""The measurements of one run of the demo."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pyiceberg.table.snapshots import Snapshot
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFigures:
    """Measurements of one batch."""

    added_row_count: int
    added_data_files_count: int
    added_delete_files_count: int
    written_bytes: int
    already_applied: bool = False

    @classmethod
    def of(cls, snapshot: Snapshot) -> BatchFigures:
        """The figures of a snapshot that another process committed, without its metadata files."""
        summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
        rows, data_files, delete_files, size = (
            int(summary.get(name, 0))
            for name in ("added-records", "added-data-files", "added-delete-files", "added-files-size")
        )
        return cls(
            added_row_count=rows,
            added_data_files_count=data_files,
            added_delete_files_count=delete_files,
            written_bytes=size,
        )


@dataclass(slots=True)
class DemoReport:
    """Figures of one run. `is_consistent` is true if every reader returned the same rows."""

    writer: str
    """"spark" or "local"."""
    directory: str
    message_count: int = 0
    batch_count: int = 0
    written_row_count: int = 0
    """Rows written by all batches. Later batches replaced many of them."""
    row_count: int = 0
    row_count_before_last_batch: int = 0
    data_file_count: int = 0
    delete_file_counts: dict[str, int] = field(default_factory=dict)
    """Live delete files by kind before the conversion."""
    delete_file_counts_after: dict[str, int] = field(default_factory=dict)
    written_bytes_per_message: float = 0.0
    delete_bytes_per_message: float = 0.0
    converted_row_count: int = 0
    refused_before_conversion: str = ""
    """PyIceberg's error for the table before the conversion."""
    is_consistent: bool = False
    step_seconds: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For `--output json`."""
        return asdict(self)

    def render(self) -> RenderableType:
        """The report as text."""
        figures = RichTable(show_header=False, box=None, padding=(0, 2, 0, 0))
        figures.add_column(style="bold")
        figures.add_column(justify="right")
        for name, value in self._figures():
            figures.add_row(name, value)
        seconds = RichTable(title="Seconds per step", title_justify="left", box=None, padding=(0, 2, 0, 0))
        seconds.add_column("step")
        seconds.add_column("seconds", justify="right")
        for step, spent in self.step_seconds.items():
            seconds.add_row(step, f"{spent:.2f}")
        verdict = (
            Text("Every reader saw the same rows.", style="green")
            if self.is_consistent
            else Text("The readers disagree: this is a bug.", style="bold red")
        )
        return Group(Text(), figures, Text(), seconds, Text(), verdict, Text(f"The table is in {self.directory}."))

    def _figures(self) -> list[tuple[str, str]]:
        def kinds(counts: dict[str, int]) -> str:
            return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "none"

        return [
            ("messages", f"{self.message_count:,} in {self.batch_count} batches"),
            ("rows written", f"{self.written_row_count:,}"),
            ("rows now", f"{self.row_count:,}"),
            ("rows before the last batch", f"{self.row_count_before_last_batch:,}"),
            ("data files", f"{self.data_file_count:,}"),
            ("delete files before conversion", kinds(self.delete_file_counts)),
            ("delete files after conversion", kinds(self.delete_file_counts_after)),
            ("rows that conversion deleted by position", f"{self.converted_row_count:,}"),
            ("bytes written per replaced message", f"{self.written_bytes_per_message:,.1f}"),
            ("  of which delete files", f"{self.delete_bytes_per_message:,.1f}"),
        ]


def print_report(report: DemoReport, console: Console) -> None:
    console.print(report.render())
