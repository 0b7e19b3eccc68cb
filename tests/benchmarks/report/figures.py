"""The measurements: plain data, kept as JSON between a run and its report."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Figure:
    """One thing that a system did, every time that it did it."""

    workload: str
    what: str
    system: str
    at: float | None = None
    """The position on the x axis, if there is one: commits, files, deletes."""
    wall_seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    """The CPU time of the system's own process, or processes."""

    @property
    def wall(self) -> float:
        return statistics.median(self.wall_seconds)

    @property
    def cpu(self) -> float:
        return statistics.median(self.cpu_seconds)


@dataclass(slots=True)
class Measurements:
    """Everything of a run."""

    machine: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    """Notes about the figures of a workload: the systems that were removed, and the reason."""
    sizes: dict[str, str] = field(default_factory=dict)
    """The size of each workload, in words: rows, commits, rounds."""

    def add(self, workload: str, what: str, system: str, took: tuple[float, float], *, at: float | None = None) -> None:
        """Another time; `took` is wall and CPU seconds."""
        figure = self.find(workload, what, system, at)
        if figure is None:
            figure = Figure(workload, what, system, at)
            self.figures.append(figure)
        figure.wall_seconds.append(took[0])
        figure.cpu_seconds.append(took[1])

    def find(self, workload: str, what: str, system: str, at: float | None = None) -> Figure | None:
        for figure in self.figures:
            if (figure.workload, figure.what, figure.system, figure.at) == (workload, what, system, at):
                return figure
        return None

    def of(self, workload: str) -> list[Figure]:
        return [figure for figure in self.figures if figure.workload == workload]

    def note(self, workload: str, text: str) -> None:
        if (workload, text) not in self.notes:
            self.notes.append((workload, text))

    def forget(self, workload: str) -> None:
        """Before it is measured again."""
        self.figures = [figure for figure in self.figures if figure.workload != workload]
        self.notes = [(of, text) for of, text in self.notes if of != workload]

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @staticmethod
    def loaded(path: Path) -> Measurements:
        stored = json.loads(path.read_text())
        figures = [Figure(**figure) for figure in stored.pop("figures")]
        notes = [(workload, text) for workload, text in stored.pop("notes")]
        return Measurements(**stored, figures=figures, notes=notes)


def in_order(names: Iterable[str]) -> list[str]:
    """Each name once, in the order of first occurrence."""
    return list(dict.fromkeys(names))
