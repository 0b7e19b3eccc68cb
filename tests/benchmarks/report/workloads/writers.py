"""Several processes that replace messages of one table concurrently."""

from __future__ import annotations

import time
from contextlib import ExitStack

from small_files import messages

from report.digests import differences
from report.expected import ExpectedRows
from report.systems.process import LackingError, Running, System, SystemFailedError, running
from report.workloads.contest import LIMIT, Setting, in_file

WORKLOAD = "writers"
WRITERS = (1, 2, 4, 8)
_COMMITS = 24
"""The number of commits of all writers together."""
_MESSAGES, _REPLACED = 5_000, 20


def run(setting: Setting) -> None:
    """The same number of commits by more and more writers; each writer has its own messages."""
    setting.measurements.sizes[WORKLOAD] = (
        f"{_MESSAGES * 20:,} rows; {_COMMITS} commits in all, each of which replaces {_REPLACED} messages of "
        "its own; a commit that is lost is tried again"
    )
    systems = [system for system in setting.systems if system.name not in (LIMIT, "tableformat, upkeep")]
    for writers in WRITERS:
        for system in list(systems):
            if setting.deadline.is_over:
                setting.measurements.note(WORKLOAD, f"The time was over at {writers} writers.")
                return
            try:
                _write(setting, system, writers)
            except SystemFailedError as error:
                reason = "cannot be opened again" if isinstance(error, LackingError) else "left"
                setting.measurements.note(WORKLOAD, f"{system.name} {reason} at {writers} writers: {error}.")
                systems.remove(system)


def _write(setting: Setting, system: System, writers: int) -> None:
    directory = setting.directory / f"{system.name.replace(' ', '-')}-{writers}"
    base = messages(0, _MESSAGES, 20, seed=1)
    answers = ExpectedRows(base)
    parts: list[list[str]] = [[] for _ in range(writers)]
    for number in range(_COMMITS):
        rows = messages(number * 100, _REPLACED, 15, seed=number)
        answers.replace(rows)
        parts[number % writers].append(in_file(rows, setting.directory / f"replaced-{number}.parquet"))
    with ExitStack() as stack:
        loader = stack.enter_context(running(system, directory))
        loader.call("load", rows=in_file(base, setting.directory / "base.parquet"), amount="amount")
        others = [stack.enter_context(running(system, directory)) for _ in range(writers - 1)]
        for each in others:
            each.call("open", amount="amount")
        lost = _all_at_once(setting, [loader, *others], parts, writers)
        if wrong := differences(loader.call("scan").value, answers.digest()):
            raise SystemFailedError(f"its answer was wrong: {'; '.join(wrong[:3])}")
    answers.close()
    if lost:
        setting.measurements.note(WORKLOAD, f"{system.name}, {writers} writers: {lost} commits were lost and repeated.")


def _all_at_once(setting: Setting, processes: list[Running], parts: list[list[str]], writers: int) -> int:
    """Commits that were lost; the figure is the time until the last is done, and the CPU time of all."""
    started = time.perf_counter()
    for process, paths in zip(processes, parts, strict=True):
        process.send("replace_many", paths=paths)
    seconds = max(setting.deadline.left, 10)
    answers = [process.receive(seconds=seconds) for process in processes]
    took = (time.perf_counter() - started) / _COMMITS, sum(answer.cpu for answer in answers) / _COMMITS
    setting.measurements.add(WORKLOAD, "a commit", processes[0].name, took, at=writers)
    return sum(answer.value["lost"] for answer in answers)
