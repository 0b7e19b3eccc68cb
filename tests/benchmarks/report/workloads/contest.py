"""Systems that take turns at the same calls, until their answers are wrong or their time is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from report.budget import Deadline
from report.digests import Digest, differences
from report.figures import Measurements
from report.systems.process import Answer, LackingError, Running, System, SystemFailedError, running

LIMIT = "the bare files"
"""The name of pyarrow and DuckDB on files without a table."""


class TimeIsOverError(Exception):
    """A workload has had its part of the time; what it has measured stays."""


@dataclass(slots=True)
class Setting:
    """The arguments of a workload."""

    systems: Sequence[System]
    directory: Path
    """Empty, and its own."""
    deadline: Deadline
    measurements: Measurements


@dataclass(slots=True)
class Contest:
    """The systems of one workload that are still in it."""

    workload: str
    setting: Setting
    systems: dict[str, Running]
    spent_seconds: dict[str, float] = field(default_factory=dict)
    _turns: int = 0

    def each(
        self,
        what: str,
        verb: str,
        *,
        at: float | None = None,
        expected: Digest | None = None,
        only: Sequence[str] | None = None,
        seconds: float = 120,
        is_recorded: bool = True,
        arguments_of: Callable[[str], Mapping[str, Any]] = lambda _: {},
        **arguments: Any,
    ) -> dict[str, Any]:
        """Send the request to all systems by turns, every other time in reverse order; a system that fails or gives a
        wrong answer is removed.

        Raises TimeIsOverError if the workload's time is over.
        """
        if self.setting.deadline.is_over:
            raise TimeIsOverError(f"at {what}{'' if at is None else f', {at:,.0f}'}")
        self._turns += 1
        answers = {}
        for name in list(self.systems)[:: -1 if self._turns % 2 else 1]:
            if only is not None and name not in only:
                continue
            try:
                answer = self.systems[name].call(verb, seconds=seconds, **arguments, **arguments_of(name))
                self._hold(answer, None if name == LIMIT else expected)
            except LackingError as error:
                self.setting.measurements.note(self.workload, f"{name} has no {verb}: {error}.")
                continue
            except SystemFailedError as error:
                self.leave(name, f"at {what}{'' if at is None else f', {at:,.0f}'}: {error}")
                continue
            answers[name] = answer.value
            self.spent_seconds[name] = self.spent_seconds.get(name, 0.0) + answer.wall
            if is_recorded:
                self.setting.measurements.add(self.workload, what, name, answer.took, at=at)
        return answers

    def paths(self) -> list[str]:
        """The data files that ours has now: what the limit reads in the same time."""
        for name in ("tableformat", "tableformat, upkeep"):
            if name in self.systems:
                found: list[str] = self.systems[name].call("paths").value
                return found
        return []

    def leave(self, name: str, why: str) -> None:
        """The figures that it has stay."""
        self.setting.measurements.note(self.workload, f"{name} left {why}.")
        del self.systems[name]

    @staticmethod
    def _hold(answer: Answer, expected: Digest | None) -> None:
        if expected is not None and (wrong := differences(answer.value, expected)):
            raise SystemFailedError(f"its answer was wrong: {'; '.join(wrong[:3])}")


@contextmanager
def contest(workload: str, setting: Setting, systems: Sequence[System], directory: Path) -> Iterator[Contest]:
    """All systems, each in its own directory below this one."""
    with ExitStack() as stack:
        started = {
            system.name: stack.enter_context(running(system, directory / system.name.replace(" ", "-")))
            for system in systems
        }
        entered = Contest(workload, setting, started)
        for name, each in started.items():
            if name not in setting.measurements.versions:
                said = each.call("versions").value
                setting.measurements.versions[name] = ", ".join(f"{what} {which}" for what, which in said.items())
        yield entered


def in_file(rows: pa.Table, path: Path) -> str:
    """Rows on their way to the systems."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)
    return str(path)
