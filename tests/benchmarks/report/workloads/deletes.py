"""Scans after deletes, by the kind and number of the deletes."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from small_files import KEY, messages

from report.digests import Digest
from report.expected import ExpectedRows
from report.workloads.contest import LIMIT, Contest, Setting, contest, in_file

WORKLOAD = "deletes"
STOPS = (0, 1, 10, 100, 1_000)
_MESSAGES = 50_000
_KEYS = 20
_READS = 3
PREFIX, KEYS, VALUE = "prefixes of a message", f"{_KEYS} keys each", "by value, one in 1,000 rows each"
KINDS = {PREFIX: STOPS, KEYS: STOPS, VALUE: (0, 1, 10, 50)}


def run(setting: Setting) -> None:
    """Each kind in its own table, with an equal part of the time."""
    setting.measurements.sizes[WORKLOAD] = f"{_MESSAGES * 20:,} rows of eight columns; every delete is a commit"
    rows = messages(0, _MESSAGES, 20, seed=1)
    base = in_file(rows, setting.directory / "base.parquet")
    until = setting.deadline.seconds
    for number, (kind, stops) in enumerate(KINDS.items()):
        ends_with_left = until * (len(KINDS) - number - 1) / len(KINDS)
        with contest(WORKLOAD, setting, setting.systems, setting.directory / str(number)) as entered:
            _one_kind(entered, kind, stops, rows, base, ends_with_left)


def _one_kind(
    entered: Contest, kind: str, stops: tuple[int, ...], rows: pa.Table, base: str, ends_with_left: float
) -> None:
    answers = ExpectedRows(rows)
    entered.each("load", "load", rows=base, amount="amount", is_recorded=False)
    entered.spent_seconds.clear()
    deadline = entered.setting.deadline
    part = (deadline.left - ends_with_left) / len(entered.systems)
    order = np.random.default_rng(5).permutation(_MESSAGES)
    _scan(entered, kind, 0, answers.digest())
    for before, stop in itertools.pairwise(stops):
        for number in range(before, stop):
            _delete(entered, kind, number, stop, order, answers)
            for name, spent in list(entered.spent_seconds.items()):
                if spent > part and name in entered.systems:
                    entered.leave(name, f"{kind}, after {number + 1:,} deletes, when its part of the time was over")
            if deadline.left < ends_with_left:
                entered.setting.measurements.note(WORKLOAD, f"{kind}: the time was over after {number + 1:,} deletes.")
                answers.close()
                return
        _scan(entered, kind, stop, answers.digest())
    answers.close()


def _delete(entered: Contest, kind: str, number: int, stop: int, order: np.ndarray, answers: ExpectedRows) -> None:
    tables = [name for name in entered.systems if name != LIMIT]
    what = f"delete, {kind}"
    if kind == PREFIX:
        message = int(order[number])
        values = {"id1": f"C{message // 100:08d}", "id2": message % 100}
        answers.delete_prefix(values)
        entered.each(what, "delete_prefix", at=stop, only=tables, values=values)
    elif kind == KEYS:
        chosen = order[number * _KEYS : (number + 1) * _KEYS]
        keys = pa.concat_tables(messages(int(each), 1, 20, seed=0).slice(number % 20, 1) for each in chosen)
        keys = keys.select(list(KEY))
        answers.delete_rows(keys)
        path = in_file(keys, entered.setting.directory / "keys.parquet")
        entered.each(what, "delete_rows", at=stop, only=tables, keys=path)
    else:
        answers.delete_where("amount", float(number + 1))
        entered.each(what, "delete_where", at=stop, only=tables, column="amount", below=float(number + 1))


def _scan(entered: Contest, kind: str, stop: int, expected: Digest) -> None:
    paths = entered.paths()
    for _ in range(_READS):
        entered.each(
            f"scan after {kind}",
            "scan",
            at=stop,
            expected=expected,
            arguments_of=lambda name: {"paths": paths} if name == LIMIT else {},
        )
