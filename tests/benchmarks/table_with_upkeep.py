"""Scans of a table that is written to, and of the same rows compacted at that moment."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from measuring import against_target, show

import tableformat as tf

_TURNS = 7
_SCAN_TARGET = 2.0
"""The target as a multiple of the same rows compacted, at every moment (issue 9, section 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The cost of a scan at one moment, in seconds of CPU time."""

    commits: int
    files: int
    first: float
    """By a new handle, of commits that no scan has seen."""
    again: float
    """Median of the next ones."""
    compacted: float
    """The cost for a table with the same rows in one piece, measured by turns."""

    @property
    def ratio(self) -> float:
        return self.again / self.compacted


def look_at(catalog: tf.Catalog, name: str, commits: int) -> Look:
    reader = catalog.load_table(name)
    started = time.process_time()
    rows = reader.scan().to_arrow()
    first = time.process_time() - started
    twin = f"{name}_compacted"
    catalog.create_table(twin, rows.schema, key=reader.key).append(rows)
    compacted = catalog.load_table(twin)
    assert scanned(compacted)[1] == rows.num_rows
    turns = [(scanned(reader)[0], scanned(compacted)[0]) for _ in range(_TURNS)]
    again, beside = (statistics.median(seconds) for seconds in zip(*turns, strict=True))
    catalog.drop_table(twin, purge=True)
    files = reader.inspect.data_files().num_rows
    return Look(commits=commits, files=files, first=first, again=again, compacted=beside)


def scanned(table: tf.Table) -> tuple[float, int]:
    """Seconds of CPU, rows."""
    started = time.process_time()
    rows = table.scan().to_arrow().num_rows
    return time.process_time() - started, rows


def show_looks(looks: Sequence[Look]) -> None:
    for look in looks:
        show(
            f"after {look.commits}, {look.files} files: CPU; compacted; the first",
            f"{look.again * 1000:.0f} ms; {look.compacted * 1000:.0f} ms, {look.ratio:.2f}; {look.first * 1000:.0f} ms",
        )
    ratios = [look.ratio for look in looks]
    show("scans against compacted, median", f"{statistics.median(ratios):9.3f}")
    within = sum(ratio <= _SCAN_TARGET for ratio in ratios)
    against_target(f"largest ({within} of {len(ratios)} within)", max(ratios), _SCAN_TARGET)
