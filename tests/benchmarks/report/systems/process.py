"""A system's process, as seen by the calling process."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_BENCHMARKS: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class System:
    """How a system is started."""

    name: str
    module: str
    adapter: str
    python: str
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """One call."""

    wall: float
    cpu: float
    value: Any

    @property
    def took(self) -> tuple[float, float]:
        return self.wall, self.cpu


class SystemFailedError(Exception):
    """The error that a system returned instead of an answer, or a timeout."""


class LackingError(SystemFailedError):
    """The project does not have this operation."""


class Running:
    """A system that answers."""

    def __init__(self, system: System, process: subprocess.Popen[str]) -> None:
        self.name = system.name
        self._process = process

    def send(self, verb: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"verb": verb, **arguments}) + "\n")
        self._process.stdin.flush()

    def receive(self, *, seconds: float) -> Answer:
        """Raises SystemFailedError for an error, or after this number of seconds, which also ends the process."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            self._process.kill()
            raise SystemFailedError(f"no answer within {seconds:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise SystemFailedError(f"its process ended with {self._process.wait()}")
        answer = json.loads(line)
        if "lacks" in answer:
            raise LackingError(answer["lacks"])
        if "error" in answer:
            raise SystemFailedError(answer["error"])
        return Answer(answer["wall"], answer["cpu"], answer["answer"])

    def call(self, verb: str, *, seconds: float = 600, **arguments: Any) -> Answer:
        self.send(verb, **arguments)
        return self.receive(seconds=seconds)


@contextmanager
def running(system: System, directory: Path) -> Iterator[Running]:
    """The system in its own process, over that directory; its other output is in `said.txt` there."""
    directory.mkdir(parents=True, exist_ok=True)
    command = [system.python, "-m", "report.systems.answering", system.module, system.adapter, str(directory)]
    paths = [str(_BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **system.environment}
    with (
        (directory / "said.txt").open("a") as said,
        subprocess.Popen(
            [*command, *system.options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=environment,
        ) as process,
    ):
        try:
            yield Running(system, process)
        finally:
            if process.poll() is None:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
