"""Times of alternatives that do the same work, taken by turns in one run, and printed next to their target.

Machines differ and are shared, so no test asserts a time: the output has the ratio and its target.
"""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_PROCESS_IO: Final = Path("/proc/self/io")


@dataclass(slots=True)
class Timing:
    """Every repetition of one thing."""

    wall_seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    """The CPU time of all threads of this process, and of the child processes that it waited for."""

    @property
    def wall(self) -> float:
        return statistics.median(self.wall_seconds)

    @property
    def cpu(self) -> float:
        return statistics.median(self.cpu_seconds)

    def __str__(self) -> str:
        spread = f"{min(self.wall_seconds) * 1000:.1f} to {max(self.wall_seconds) * 1000:.1f}"
        cpu = f"cpu {self.cpu * 1000:.1f} ms, " if self.cpu_seconds else ""
        return f"{self.wall * 1000:9.1f} ms  ({cpu}{spread} in {len(self.wall_seconds)})"


@dataclass(frozen=True, slots=True)
class Contender:
    """One thing to time. What `prepare` returns is passed to `run`; it is not timed."""

    run: Callable[[Any], object]
    prepare: Callable[[], Any] = lambda: None


def race(benchmark: Any, contenders: Mapping[str, Contender], *, rounds: int) -> dict[str, Timing]:
    """Time all contenders in turns. The first is the one that pytest-benchmark records."""
    timings = {name: Timing() for name in contenders}
    ours, *others = contenders

    def time_once(name: str, prepared: Any) -> None:
        started, cpu_started = time.perf_counter(), _cpu_seconds()
        contenders[name].run(prepared)
        timings[name].wall_seconds.append(time.perf_counter() - started)
        timings[name].cpu_seconds.append(_cpu_seconds() - cpu_started)

    def others_first() -> tuple[tuple[Any], dict[str, Any]]:
        for name in others:
            prepared = contenders[name].prepare()
            gc.collect()
            time_once(name, prepared)
        prepared = contenders[ours].prepare()
        gc.collect()
        return (prepared,), {}

    benchmark.pedantic(lambda prepared: time_once(ours, prepared), setup=others_first, rounds=rounds, iterations=1)
    benchmark.extra_info.update({name: timing.wall for name, timing in timings.items()})
    return timings


def _cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def heading(text: str) -> None:
    print(f"\n\n== {text}")


def show(label: str, value: object) -> None:
    print(f"   {label:<58} {value}")


def show_all(timings: Mapping[str, Timing]) -> None:
    for name, timing in timings.items():
        show(name, timing)


def against_target(label: str, value: float, at_most: float, unit: str = "x") -> None:
    """Print the figure, its target, and whether the figure meets it."""
    verdict = "PASS" if value <= at_most else "OVER"
    show(label, f"{value:9.3f} {unit}   target at most {at_most:g} {unit}   {verdict}")


def bytes_read_by_process() -> int | None:
    """Bytes that this process has read from files so far, cached by the system or not; None if the system does not
    count them."""
    return _io_counter("rchar")


def bytes_under(directory: Path) -> dict[Path, int]:
    """Every file below a directory, and its size."""
    return {path: path.stat().st_size for path in directory.rglob("*") if path.is_file()}


def new_bytes(before: Mapping[Path, int], after: Mapping[Path, int]) -> dict[Path, int]:
    """The new files and their sizes."""
    return {path: size for path, size in after.items() if path not in before}


def _io_counter(name: str) -> int | None:
    if not _PROCESS_IO.exists():
        return None
    counters = dict(line.split(": ") for line in _PROCESS_IO.read_text().splitlines())
    return int(counters[name])
