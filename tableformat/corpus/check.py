"""Runs a reader over the tables of a written corpus: a command in a separate process, which may crash or hang."""

from __future__ import annotations

import queue
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tableformat.corpus.answers import Answer, CaseResult, Verdict, judge, parse_answer, shortened
from tableformat.corpus.write import WrittenCase
from tableformat.errors import InvalidArgumentError, UnknownOptionError

READERS: Final = Path(__file__).resolve().parent / "readers"
"""The directory of the readers in this library. `{readers}` in a command stands for it."""
OF_THIS_ENVIRONMENT: Final = ("tableformat", "pyiceberg", "polars")
"""Readers in `readers/read_tables.py` that run in this environment. Their name is enough."""

_STARTS: Final = 3
"""If this number of processes end by themselves, and there was no answer so far, the reader does not run at all."""
_TABLES_OF_STARTING: Final = 5
"""A process may take as long to start as for this number of tables."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A command that reads tables."""

    name: str
    command: tuple[str, ...]
    """The command; paths of metadata files are appended."""

    @classmethod
    def parse(cls, text: str) -> Reader:
        """`COMMAND`, `NAME=COMMAND`, or the name of a reader that runs in this environment."""
        if text in OF_THIS_ENVIRONMENT:
            return cls(text, (sys.executable, str(READERS / "read_tables.py"), text))
        name, separator, command = text.partition("=")
        if not (separator and re.fullmatch(r"[\w.-]+", name)):
            name, command = "", text
        words = tuple(word.replace("{readers}", str(READERS)) for word in shlex.split(command))
        if not words:
            raise InvalidArgumentError(f"the reader {text!r} is not a command: write NAME=COMMAND.")
        if len(words) == 1 and not separator and not Path(words[0]).exists() and "/" not in words[0]:
            raise UnknownOptionError(
                words[0], OF_THIS_ENVIRONMENT, where="--reader, if its command has arguments or a path"
            )
        return cls(name or Path(words[0]).name, words)


@dataclass(frozen=True, slots=True)
class ReaderResult:
    """The results of one reader for the cases."""

    reader: Reader
    version: str
    """Name and version stated by the reader, or else the name of the command."""
    by_case: dict[str, CaseResult]
    """By the id of the case."""


def check(
    reader: Reader,
    cases: Sequence[WrittenCase],
    *,
    tables_per_process: int = 1,
    timeout_seconds: float = 60.0,
    progress: Callable[[int, int, str], None] | None = None,
) -> ReaderResult:
    """Run the reader over the cases. Each process gets `tables_per_process` of them, and has `timeout_seconds` for each
    answer.

    If a process ends or hangs before it answered for a table, that table is `crashed`, and another process gets the
    remaining ones. Raises InvalidArgumentError for a reader that does not run at all.
    """
    results: dict[str, CaseResult] = {}
    stated: str | None = None
    left = list(cases)
    is_running = False
    while left and (is_running or len(results) < _STARTS):
        if progress is not None:
            progress(len(results), len(cases), f"{reader.name}: {left[0].id}")
        batch = left[:tables_per_process]
        ended = _run(reader, batch, timeout_seconds)
        for case, answer in zip(batch, ended.answers, strict=False):
            stated = stated or answer.reader
            is_running = True
            results[case.id] = judge(case, answer)
        answered = min(len(ended.answers), len(batch))
        if answered < len(batch):
            results[batch[answered].id] = CaseResult(Verdict.CRASHED, ended.reason)
            is_running |= ended.is_crash
            answered += 1
        left = left[answered:]
    _require_a_reader(reader, cases, results, is_running=is_running)
    return ReaderResult(reader, stated or reader.name, results)


def _require_a_reader(
    reader: Reader, cases: Sequence[WrittenCase], results: Mapping[str, CaseResult], *, is_running: bool
) -> None:
    """Raise InvalidArgumentError for a reader that is not set up: it ends by itself without any answer, or refuses all
    of several tables without deletes."""
    plain = [case for case in cases if not case.deletes and case.rows is not None]
    refuses_all = is_running and len(plain) > 1 and all(results[case.id].verdict is Verdict.REFUSED for case in plain)
    if cases and (refuses_all or not is_running):
        told = "rejected every table without deletes" if is_running else "answered for none of the tables"
        shown = results[(plain if is_running else cases)[0].id].detail
        raise InvalidArgumentError(
            f"the reader {reader.name} {told}: {shown} Its command is `{shlex.join(reader.command)}`. The command "
            "gets paths of metadata files and prints a line of JSON for each."
        )


@dataclass(frozen=True, slots=True)
class _Ended:
    """A process that has ended."""

    answers: list[Answer]
    reason: str
    """The reason why it gave no further answer."""
    is_crash: bool
    """Whether a signal ended it or it hung; false if it ended by itself."""


def _run(reader: Reader, batch: Sequence[WrittenCase], timeout_seconds: float) -> _Ended:
    command = [*reader.command, *(str(case.metadata) for case in batch)]
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
        except OSError as error:
            raise InvalidArgumentError(f"the reader {reader.name} cannot be started: {error}.") from error
        answers: list[Answer] = []
        lines = _lines(process)
        deadline = time.monotonic() + timeout_seconds * min(len(batch), _TABLES_OF_STARTING)
        try:
            while (line := _before(lines, deadline)) is not None:
                answer = parse_answer(line)
                if answer is not None:
                    answers.append(answer)
                    deadline = max(deadline, time.monotonic() + timeout_seconds)
        except queue.Empty:
            process.kill()
            process.wait()
            return _Ended(answers, f"no answer within {timeout_seconds:g} seconds.", is_crash=True)
        status = process.wait()
        said.seek(0)
        last = _last_line(said.read().decode(errors="replace"))
    ending = f"signal {-status}" if status < 0 else f"status {status}"
    return _Ended(answers, shortened(f"the process ended with {ending}. {last}"), is_crash=status < 0)


def _before(lines: queue.Queue[str | None], deadline: float) -> str | None:
    """The next line. Raises queue.Empty if it is late, even if other text was printed."""
    left_seconds = deadline - time.monotonic()
    if left_seconds <= 0:
        raise queue.Empty
    return lines.get(timeout=left_seconds)


def _lines(process: subprocess.Popen[bytes]) -> queue.Queue[str | None]:
    """The output of the process, line by line, and None at the end."""
    lines: queue.Queue[str | None] = queue.Queue()
    printed = process.stdout
    assert printed is not None

    def read() -> None:
        with printed:
            for line in printed:
                lines.put(line.decode(errors="replace"))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
