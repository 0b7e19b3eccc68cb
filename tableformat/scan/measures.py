"""Measures of the steps of a running scan: files, rows, bytes, time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock
from time import perf_counter


class Step(StrEnum):
    """A step of a scan, in the order in which rows go through them."""

    PLAN = "plan"
    FIND_DELETED = "find deleted rows"
    OPEN = "open files"
    DECODE = "decode"
    DROP_DELETED = "drop deleted rows"
    FILTER = "filter"
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class StepMeasures:
    """Input and output of one step of a scan, summed over all files."""

    step: str
    seconds: float
    """Sum over all threads. For `return`, the time of the whole scan including planning."""
    file_count: int
    """Data files that the step worked on; for `find deleted rows`, the files that deletes apply to."""
    row_count: int
    """Rows that the step passed on; for `find deleted rows`, the deleted rows that it found."""
    size_bytes: int
    """Bytes of files that the step read. For `plan`, the size of the remaining files; for `find deleted rows`, the size
    of the delete files that apply; for `return`, the size of the rows in memory."""


@dataclass(slots=True)
class StepCall:
    """One call of a step, which fills in the fields."""

    file_paths: set[str] = field(default_factory=set)
    row_count: int = 0
    size_bytes: int = 0


class ScanMeter:
    """Adds up the calls of the steps of one scan. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sums = {step: StepCall() for step in Step}
        self._seconds = dict.fromkeys(Step, 0.0)

    @contextmanager
    def measure(self, step: Step) -> Iterator[StepCall]:
        """Add the time until the block ends, and the numbers that the block fills in."""
        call = StepCall()
        began = perf_counter()
        yield call
        seconds = perf_counter() - began
        with self._lock:
            total = self._sums[step]
            total.file_paths |= call.file_paths
            total.row_count += call.row_count
            total.size_bytes += call.size_bytes
            self._seconds[step] += seconds

    def measures(self) -> tuple[StepMeasures, ...]:
        """The sums of each step so far."""
        with self._lock:
            return tuple(
                StepMeasures(
                    step=step.value,
                    seconds=self._seconds[step],
                    file_count=len(total.file_paths),
                    row_count=total.row_count,
                    size_bytes=total.size_bytes,
                )
                for step, total in self._sums.items()
            )
