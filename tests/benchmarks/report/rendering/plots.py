"""Small SVG plots: CPU seconds by commits, files, deletes or writers, with both axes logarithmic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from report.figures import Figure, Measurements, in_order

mpl.use("svg")
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "bench-report", "font.size": 9})
_COLOURS = {
    "tableformat": "#1f5fbf",
    "tableformat, upkeep": "#7fb0f0",
    "PyIceberg": "#d9822b",
    "Iceberg": "#d9822b",
    "delta-rs": "#2e8b57",
    "Delta": "#2e8b57",
    "DuckLake": "#b8a000",
}


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture: a workload's figures of one thing."""

    workload: str
    what: str
    x: str
    """The name of the x axis."""

    @property
    def file_name(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", f"{self.workload} {self.what}".lower()).strip("-") + ".svg"


PLOTS = (
    Plot("growth", "commit", "commits"),
    Plot("growth", "scan, a fresh handle", "commits"),
    Plot("growth", "count and sum", "commits"),
    Plot("scattered", "commit", "commits"),
    Plot("scattered", "scan, a fresh handle", "commits"),
    Plot("scattered", "count and sum", "commits"),
    Plot("deletes", "scan after prefixes of a message", "deletes"),
    Plot("deletes", "scan after 20 keys each", "deletes"),
    Plot("planning", "one partner, a process's first plan", "data files"),
    Plot("planning", "all files, a process's first plan", "data files"),
    Plot("writers", "a commit", "writers at once"),
)


def draw(plot: Plot, measurements: Measurements, directory: Path) -> bool:
    """Whether there was anything to draw."""
    figures = [figure for figure in measurements.of(plot.workload) if figure.what == plot.what]
    if not figures:
        return False
    canvas = Canvas(figsize=(5.2, 3.2), layout="constrained")
    axes = canvas.add_subplot()
    for system in in_order(figure.system for figure in figures):
        points = [(_place(figure), figure.cpu) for figure in figures if figure.system == system]
        axes.plot(
            *zip(*sorted(points), strict=True), marker="o", ms=3, label=system, color=_COLOURS.get(system, "#888888")
        )
    axes.set(xscale="log", yscale="log", xlabel=plot.x, ylabel="CPU seconds", title=plot.what)
    axes.grid(visible=True, lw=0.3)
    axes.legend(fontsize=7, frameon=False)
    canvas.savefig(directory / plot.file_name, metadata={"Date": None, "Creator": None})
    return True


def _place(figure: Figure) -> float:
    """Position 0 is drawn just before the first one, because a logarithmic axis has no 0."""
    return figure.at or 0.5
