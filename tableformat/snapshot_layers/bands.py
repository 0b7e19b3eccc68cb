"""Arranges spans for a picture of bounded size: bands of sequence numbers with lanes or bins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tableformat.snapshot_layers.collect import DATA, LayerSpan

MAX_BANDS: Final = 24
"""The number of rows in the picture. More sequence numbers share rows."""
MAX_SPANS: Final = 400
"""The number of files that are drawn one by one. More files are drawn in bins."""
MAX_LANES: Final = 8
"""The number of lanes in one band. A band with more is drawn in bins."""
BINS: Final = 64
KINDS: Final = (DATA, "position", "deletion-vector", "equality", "range")
"""In drawing order, from the bottom."""
_SMALLEST: Final = 0.006
"""The minimum width of a span, as a share of the axis."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A file, or an interval of the axis with the files of one kind in it."""

    kind: str
    is_reached: bool
    lower: float
    upper: float
    lane: int
    """From 0, the lowest lane of its band."""
    file_count: int
    """The maximum number of files at one position of the mark."""
    span: LayerSpan | None
    """The file; None for an interval."""


@dataclass(frozen=True, slots=True)
class Band:
    """One row of the picture."""

    first_number: int
    last_number: int
    lane_count: int
    marks: tuple[Mark, ...]
    file_count: int

    @property
    def label(self) -> str:
        is_one = self.first_number == self.last_number
        return f"#{self.first_number}" if is_one else f"#{self.first_number} to {self.last_number}"


@dataclass(frozen=True, slots=True)
class Depth:
    """The number of data files that a reader opens at each bin of the axis, and how many of them have deletes."""

    files: tuple[int, ...]
    reached: tuple[int, ...]


def arrange(spans: Sequence[LayerSpan]) -> tuple[Band, ...]:
    """Bands from the newest, at the top, to the oldest."""
    numbers = sorted({span.sequence_number for span in spans})
    if not numbers:
        return ()
    group_size = -(-len(numbers) // MAX_BANDS)
    groups = [numbers[start : start + group_size] for start in range(0, len(numbers), group_size)]
    of_number = {number: index for index, group in enumerate(groups) for number in group}
    members: dict[int, list[LayerSpan]] = defaultdict(list)
    for span in spans:
        members[of_number[span.sequence_number]].append(span)
    in_bins = len(spans) > MAX_SPANS
    bands = [_band(groups[index], members[index], in_bins=in_bins) for index in sorted(members)]
    return tuple(reversed(bands))


def depth(spans: Sequence[LayerSpan]) -> Depth:
    """The files that a scan of the whole table opens at each position."""
    data = [span for span in spans if span.kind == DATA]
    reached = [span for span in data if span.is_reached]
    return Depth(tuple(_counts(data).tolist()), tuple(_counts(reached).tolist()))


def _band(numbers: Sequence[int], spans: Sequence[LayerSpan], *, in_bins: bool) -> Band:
    ordered = sorted(spans, key=lambda span: (KINDS.index(span.kind), span.lower, span.upper, span.file_path))
    marks = [] if in_bins else list(_lanes(ordered))
    if in_bins or max((mark.lane for mark in marks), default=0) >= MAX_LANES:
        marks = list(_stretches(ordered))
    lanes = max(mark.lane for mark in marks) + 1
    return Band(numbers[0], numbers[-1], lanes, tuple(marks), len(spans))


def _lanes(ordered: Sequence[LayerSpan]) -> Iterator[Mark]:
    """Puts each file into the lowest free lane of its kind. Each kind begins above the previous one."""
    below = 0
    for kind in KINDS:
        ends: list[float] = []
        for span in ordered:
            if span.kind != kind:
                continue
            upper = max(span.upper, span.lower + _SMALLEST)
            lane = next((index for index, end in enumerate(ends) if end <= span.lower), len(ends))
            ends[lane : lane + 1] = [upper]
            yield Mark(kind, span.is_reached, span.lower, upper, below + lane, 1, span)
        below += len(ends)


def _stretches(ordered: Sequence[LayerSpan]) -> Iterator[Mark]:
    """Runs of bins with the same number of files. Each kind has its own lane."""
    lane = 0
    for kind in KINDS:
        for is_reached in (False, True):
            chosen = [span for span in ordered if span.kind == kind and span.is_reached == is_reached]
            if not chosen:
                continue
            counts = _counts(chosen)
            starts = np.flatnonzero(np.diff(counts, prepend=counts[0] + 1))
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), BINS], strict=True):
                if counts[start]:
                    yield Mark(kind, is_reached, start / BINS, end / BINS, lane, int(counts[start]), None)
            lane += 1


def _counts(spans: Sequence[LayerSpan]) -> npt.NDArray[np.int64]:
    """The number of spans that overlap each bin."""
    changes = np.zeros(BINS + 1, np.int64)
    lower = np.fromiter((span.lower for span in spans), np.float64, len(spans))
    upper = np.fromiter((span.upper for span in spans), np.float64, len(spans))
    first = np.minimum((lower * BINS).astype(np.int64), BINS - 1)
    last = np.maximum(np.minimum(np.ceil(upper * BINS).astype(np.int64), BINS), first + 1)
    np.add.at(changes, first, 1)
    np.add.at(changes, last, -1)
    return np.cumsum(changes)[:BINS]
