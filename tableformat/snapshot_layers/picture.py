"""`Picture`: the input of the drawings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tableformat.snapshot_layers.bands import BINS, Band, Depth
from tableformat.snapshot_layers.collect import Collected


@dataclass(frozen=True, slots=True)
class Picture:
    """The arranged files of a snapshot."""

    name: str
    snapshot_id: int | None
    collected: Collected
    bands: tuple[Band, ...]
    """From the newest sequence numbers to the oldest."""
    depth: Depth

    @property
    def is_binned(self) -> bool:
        """Whether some files are drawn together, because there are too many to draw each."""
        return any(mark.span is None for band in self.bands for mark in band.marks)

    @property
    def title(self) -> str:
        """The contents of the picture in one line."""
        counts = Counter(span.kind for span in self.collected.spans)
        parts = [_counted(count, kind) for kind, count in sorted(counts.items())]
        return f"{self.name} by {self.collected.axis.column}: {', '.join(parts) or 'no files'}"

    @property
    def notes(self) -> list[str]:
        """Notes that help to read the picture correctly."""
        axis = self.collected.axis
        told = []
        if not axis.to_scale:
            told.append("Values stand at equal distances.")
        if self.is_binned:
            told.append(f"{len(self.collected.spans):,} files are drawn in {BINS} columns: a mark stands for several.")
        if any(band.first_number != band.last_number for band in self.bands):
            told.append("Some rows have several sequence numbers.")
        unbounded = sum(not span.is_bounded for span in self.collected.spans)
        if unbounded:
            told.append(f"Files without a bound on some side, or with nulls, reach to the edge: {unbounded:,}.")
        return told

    @property
    def reader(self) -> str:
        """The files that a scan of the whole table opens, in one sentence."""
        data = [span for span in self.collected.spans if span.kind == "data"]
        reached = sum(span.is_reached for span in data)
        most = max(self.depth.files, default=0)
        return (
            f"A reader opens {_counted(len(data), 'data')}, {reached:,} of them with deletes; at most {most:,} at one "
            "place."
        )


def _counted(count: int, kind: str) -> str:
    noun = "file" if count == 1 else "files"
    if kind == "deletion-vector":
        return f"{count:,} deletion vector" + ("" if count == 1 else "s")
    return f"{count:,} data {noun}" if kind == "data" else f"{count:,} {kind} delete {noun}"
