"""A million rows, then commits that each replace 100 messages: the time of a commit and of a read after N of them.

There are two runs: with adjacent messages, and with messages from all over the table, as in a stream without an order.
"""

from __future__ import annotations

import itertools

from small_files import expected, messages, replaced_messages, rows_of

from report.digests import Digest
from report.workloads.contest import LIMIT, Contest, Setting, contest, in_file

WORKLOAD = "growth"
SCATTERED = "scattered"
STOPS = (1, 10, 100, 500, 1_000, 2_000, 5_000, 10_000)
_MESSAGES, _REPLACED = 50_000, 100
_COUNTED = 50
"""The number of commits before a stop whose times count for it."""
_READS = 3


def run(setting: Setting) -> None:
    """Run as many commits as the time allows; a system that has used its part of the time stops."""
    _run(WORKLOAD, setting)


def run_scattered(setting: Setting) -> None:
    """The same with messages from all over the table."""
    _run(SCATTERED, setting)


def _run(workload: str, setting: Setting) -> None:
    where = "from all over the table" if workload == SCATTERED else "side by side"
    setting.measurements.sizes[workload] = (
        f"{_MESSAGES * 20:,} rows of eight columns; each commit replaces {_REPLACED} messages {where}, "
        f"{_REPLACED * 20:,} rows, by {_REPLACED * 15:,}"
    )
    with contest(workload, setting, setting.systems, setting.directory) as entered:
        base = in_file(messages(0, _MESSAGES, 20, seed=1), setting.directory / "base.parquet")
        entered.each("load", "load", rows=base, amount="amount", is_recorded=False)
        entered.spent_seconds.clear()
        part = setting.deadline.seconds / len(entered.systems)
        for before, stop in itertools.pairwise((0, *STOPS)):
            for number in range(before, stop):
                _replace(entered, workload, number, stop)
                for name, spent in list(entered.spent_seconds.items()):
                    if spent > part and name in entered.systems:
                        entered.leave(name, f"after {number + 1:,} commits, when its part of the time was over")
                if setting.deadline.is_over or set(entered.systems) <= {LIMIT}:
                    entered.setting.measurements.note(workload, f"The time was over after {number + 1:,} commits.")
                    return
            _read(entered, workload, stop)


def _replace(entered: Contest, workload: str, number: int, stop: int) -> None:
    replaced = replaced_messages(number, is_scattered=workload == SCATTERED)
    path = entered.setting.directory / "incoming.parquet"
    rows = in_file(rows_of(replaced, 15, seed=number), path)
    tables = [name for name in entered.systems if name != LIMIT]
    entered.each("commit", "replace", at=stop, only=tables, rows=rows, is_recorded=stop - number <= _COUNTED)


def _read(entered: Contest, workload: str, stop: int) -> None:
    rows, amount = expected(stop, whole_messages=True, is_scattered=workload == SCATTERED)
    answer: Digest = {"rows": rows, "sum amount": amount}
    paths = entered.paths()
    for _ in range(_READS):
        for what, verb in (("scan, a fresh handle", "scan"), ("count and sum", "total")):
            entered.each(
                what,
                verb,
                at=stop,
                expected=answer,
                arguments_of=lambda name: {"paths": paths} if name == LIMIT else {},
            )
