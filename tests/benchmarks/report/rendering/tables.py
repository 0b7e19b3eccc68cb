"""Figures in rows and columns: the operation, the system, and the time as a multiple of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from report.figures import Figure, Measurements, in_order

OURS = "tableformat"
_NEARLY = 1.15
"""Ratios below this count as equal."""


def table(measurements: Measurements, workload: str) -> list[str]:
    """Markdown: a line for each measurement and position, a column for each system. Ours has seconds of CPU and wall
    time; the others have multiples of CPU time and, in brackets, of wall time."""
    figures = measurements.of(workload)
    systems = in_order(figure.system for figure in figures)
    systems = [OURS, *[system for system in systems if system != OURS]]
    lines = [f"| | {OURS}, s CPU (wall) | {' | '.join(systems[1:])} |", "|---" * (len(systems) + 1) + "|"]
    for what, at in in_order((figure.what, figure.at) for figure in figures):
        found = {figure.system: figure for figure in figures if (figure.what, figure.at) == (what, at)}
        label = what if at is None else f"{what}: {at:,.0f}"
        cells = [_cell(found.get(system), found.get(OURS)) for system in systems]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def behind(measurements: Measurements, workload: str, limits: Sequence[str]) -> list[str]:
    """The figures in which another table took less CPU time than ours: at the last position of each, the best of the
    others."""
    found = []
    figures = [figure for figure in measurements.of(workload) if figure.system not in limits]
    for what in in_order(figure.what for figure in figures):
        ours = _last(figure for figure in figures if figure.what == what and figure.system.startswith(OURS))
        if ours is None:
            continue
        others = [
            each for each in figures if each.what == what and each.at == ours.at and each.system not in _own(each)
        ]
        best = min(others, key=lambda each: each.cpu, default=None)
        if best is not None and ours.cpu > _NEARLY * best.cpu:
            place = "" if ours.at is None else f", at {ours.at:,.0f}"
            found.append(
                f"{what}{place}: {ours.system} took {ours.cpu / best.cpu:.1f} times the CPU time of {best.system}"
            )
    return found


def _own(figure: Figure) -> tuple[str, ...]:
    return (figure.system,) if figure.system.startswith(OURS) else ()


def _last(figures: Iterable[Figure]) -> Figure | None:
    """Our figure at its last position; of our two variants, the faster one."""
    own = list(figures)
    last = max((figure.at or 0 for figure in own), default=None)
    return min((figure for figure in own if (figure.at or 0) == last), key=lambda each: each.cpu, default=None)


def _cell(figure: Figure | None, ours: Figure | None) -> str:
    if figure is None:
        return ""
    if ours is None or figure is ours:
        return f"{_seconds(figure.cpu)} ({_seconds(figure.wall)})"
    return f"{_multiple(figure.cpu, ours.cpu)} ({_multiple(figure.wall, ours.wall)})"


def _seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def _multiple(value: float, of: float) -> str:
    if not of:
        return "-"
    ratio = value / of
    return f"{ratio:,.0f} x" if ratio >= 100 else f"{ratio:.1f} x" if ratio >= 1 else f"{ratio:.2f} x"
