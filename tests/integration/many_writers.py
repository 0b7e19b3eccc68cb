"""Many processes that write to one table for a while: the calls of each, and its waiting times.

Every writer chooses random operations. It describes each operation in the snapshot summary, with a value that no other
writer uses. `replayed_history.py` replays that history in the order of the snapshots. Concurrently, a keeper process
runs the maintenance jobs and expires snapshots that were already replayed.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import pickle
import random
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pyarrow as pa
from replayed_history import ACT, COLUMNS, KEY, SHARED, ReplayedHistory, condition_text

import tableformat as tf
from tableformat.errors import CommitConflictError, DuplicateKeyError

SCHEMA = pa.schema([("g", pa.int64()), ("k", pa.int64()), ("v", pa.string())])
TABLE = "db.t"
GROUPS, KEYS = 6, 24
PROPERTIES = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "100"}
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Lake:
    """The arguments that a process needs to open the catalog."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def open(self) -> Iterator[tf.Catalog]:
        with tf.open_catalog(self.name, **self.options) as catalog:
            yield catalog

    def create(self) -> None:
        with self.open() as catalog:
            catalog.create_namespace("db")
            catalog.create_table(TABLE, SCHEMA, key=list(KEY), properties=PROPERTIES)


@dataclass(frozen=True)
class Call:
    """One call of a writer."""

    value: str
    """The value in the summary of the snapshot, if there is one."""
    outcome: str
    """committed | nothing | repeated (of a batch that was applied) | conflict | duplicate"""
    seconds: float
    snapshot_id: int | None = None
    attempts: int = 0
    verbs: str = ""
    is_timed: bool = True
    """False for the first calls of a process, which import the modules of the operations."""


# -- what a writer does ------------------------------------------------------------------------------------------------

Verb = dict[str, Any]


def random_act(draw: random.Random, value: str) -> dict[str, Any]:
    """One to three operations, as data."""
    if draw.random() < 0.12:
        kinds = draw.choices([kind for kind in VERBS if kind is not append_ignoring], k=draw.randint(2, 3))
    else:
        kinds = draw.choices(VERBS, k=1)
    return {"value": value, "verbs": [kind(draw, f"{value}.{place}") for place, kind in enumerate(kinds)]}


def rows_of(draw: random.Random, value: str, *, group: int | None = None) -> list[list[Any]]:
    """Rows with different keys."""
    keys = draw.sample(range(KEYS), draw.randint(1, 4))
    return [[draw.randrange(GROUPS) if group is None else group, key, f"{value}.{key}"] for key in keys]


def condition_of(draw: random.Random) -> dict[str, int]:
    lower = draw.randrange(KEYS)
    return {"group": draw.randrange(GROUPS), "lower": lower, "upper": lower + draw.randint(1, 6)}


def append_blindly(draw: random.Random, value: str) -> Verb:
    return {"verb": "append", "rows": rows_of(draw, value)}


def append_new(draw: random.Random, value: str) -> Verb:
    return {"verb": "append", "rows": rows_of(draw, value), "on_duplicate": "error"}


def append_ignoring(draw: random.Random, value: str) -> Verb:
    return {"verb": "append", "rows": rows_of(draw, value), "on_duplicate": "ignore"}


def delete_prefix(draw: random.Random, value: str) -> Verb:
    return {"verb": "delete_prefix", "prefix": {"g": draw.randrange(GROUPS)}}


def delete_range(draw: random.Random, value: str) -> Verb:
    group, lower = draw.randrange(GROUPS), draw.randrange(KEYS)
    return {"verb": "delete_range", "lower": [group, lower], "upper": [group, lower + draw.randint(1, 8)]}


def delete_rows(draw: random.Random, value: str) -> Verb:
    return {"verb": "delete_rows", "keys": [row[:2] for row in rows_of(draw, value)]}


def delete_by_scan(draw: random.Random, value: str) -> Verb:
    return {"verb": "delete", "condition": condition_of(draw)}


def replace(draw: random.Random, value: str) -> Verb:
    return {"verb": "replace", "rows": rows_of(draw, value, group=draw.randrange(GROUPS))}


def upsert(draw: random.Random, value: str) -> Verb:
    return {"verb": "upsert", "rows": rows_of(draw, value)}


def overwrite(draw: random.Random, value: str) -> Verb:
    condition = condition_of(draw)
    return {"verb": "overwrite", "rows": rows_of(draw, value, group=condition["group"]), "condition": condition}


VERBS = [
    *(append_blindly, append_new, append_ignoring, delete_prefix, delete_range),
    *(delete_rows, delete_by_scan, replace, replace, upsert, overwrite),
]


def run_verb(to: Any, verb: Verb, **commit: Any) -> Any:
    """Run an operation, given as data, on a table or a transaction."""
    name = verb["verb"]
    rows = [to_arrow(verb["rows"])] if "rows" in verb else []
    match name:
        case "append":
            commit["on_duplicate"] = verb.get("on_duplicate", "allow")
        case "delete_prefix":
            rows = [verb["prefix"]]
        case "delete_range":
            commit |= {bound: tuple(verb[bound]) for bound in ("lower", "upper")}
        case "delete_rows":
            rows = [pa.Table.from_pylist([dict(zip(KEY, key, strict=True)) for key in verb["keys"]])]
        case "delete":
            commit |= {"where": condition_text(verb["condition"]), "mode": "scan"}
        case "replace":
            commit["prefix"] = ["g"]
        case "overwrite":
            commit |= {"where": condition_text(verb["condition"]), "allow_outside": True}
    return getattr(to, name)(*rows, **commit)


def to_arrow(rows: Sequence[Sequence[Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema=SCHEMA)


class Writer:
    """One process: its handle, its luck and its calls."""

    def __init__(self, table: tf.Table, name: str, seed: int, *, load: str) -> None:
        self.table = table
        self.name = name
        self.calls: list[Call] = []
        self._draw = random.Random(f"{name} {seed}")
        self._load = load
        self._batch = 0
        self._is_timed = False

    def warm_up(self) -> None:
        """Run every operation once, as ordinary commits."""
        for number, verb in enumerate([append_blindly] if self._load == "appends" else VERBS):
            value = f"{self.name}-warm-{number}"
            self._call({"value": value, "verbs": [verb(self._draw, value)]}, {})

    def run_until(self, deadline: float) -> None:
        self._is_timed = True
        number = 0
        while time.time() < deadline:
            number += 1
            value = f"{self.name}-{number}"
            if self._load == "appends":
                self._call({"value": value, "verbs": [append_blindly(self._draw, value)]}, {})
                continue
            act, names = random_act(self._draw, value), self._batch_names()
            call = self._call(act, names)
            # A writer that gets an error, or no answer, may call again: the batch is in the table once.
            if names and call.outcome in ("committed", "repeated") and self._draw.random() < 0.5:
                again = self._call({**act, "value": f"{value}-again"}, names)
                assert again.outcome == "repeated", (call, again)

    def _batch_names(self) -> dict[str, Any]:
        luck = self._draw.random()
        if luck < 0.15:
            self._batch += 1
            return {"application_id": self.name, "batch_id": self._batch}
        if luck < 0.25:
            # Several processes do the same batch: one of them commits it.
            return {"application_id": SHARED, "batch_id": int(time.time() * 4)}
        return {}

    def _call(self, act: dict[str, Any], names: dict[str, Any]) -> Call:
        noted = {**act, "batch": names, "seen": self.table.metadata.last_sequence_number}
        commit = {**names, "snapshot_properties": {ACT: json.dumps(noted)}}
        verbs = "+".join(verb["verb"] for verb in act["verbs"])
        started = time.perf_counter()

        def call(outcome: str, **more: Any) -> Call:
            done = Call(
                act["value"], outcome, time.perf_counter() - started, verbs=verbs, is_timed=self._is_timed, **more
            )
            self.calls.append(done)
            return done

        try:
            result = self._commit(act["verbs"], commit)
        except CommitConflictError:
            self.table.refresh()
            return call("conflict")
        except DuplicateKeyError:
            self.table.refresh()
            return call("duplicate")
        if result.already_applied:
            return call("repeated")
        if result.attempts == 0:
            return call("nothing")
        return call("committed", snapshot_id=result.snapshot_id, attempts=result.attempts)

    def _commit(self, verbs: list[Verb], commit: dict[str, Any]) -> Any:
        if len(verbs) == 1:
            return run_verb(self.table, verbs[0], **commit)
        with self.table.transaction(**commit) as transaction:
            for verb in verbs:
                run_verb(transaction, verb)
        return transaction.result


# -- processes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    lake: Lake
    directory: str
    """For what the processes hand back."""
    seconds: float
    start: Barrier
    """All begin when the last of them is ready."""
    seed: int
    load: str = "mixed"
    """mixed | appends: blind ones only, to compare throughput."""


def write(plan: Plan, name: str) -> None:
    with plan.lake.open() as catalog:
        writer = Writer(catalog.load_table(TABLE), name, plan.seed, load=plan.load)
        writer.warm_up()
        plan.start.wait()
        writer.run_until(time.time() + plan.seconds)
    Path(plan.directory, f"{name}.json").write_text(json.dumps([asdict(call) for call in writer.calls]))


def keep(plan: Plan) -> None:
    """Run maintenance jobs and replay new snapshots until the writers end."""
    draw = random.Random(plan.seed)
    history = ReplayedHistory()
    jobs: list[Call] = []
    with plan.lake.open() as catalog:
        table = catalog.load_table(TABLE)
        plan.start.wait()
        deadline = time.time() + plan.seconds
        while time.time() < deadline:
            history.advance(table.refresh())
            name, job = draw.choice(list(jobs_of(table, history).items()))
            started = time.perf_counter()
            try:
                job()
                outcome = "committed"
            except CommitConflictError:
                outcome = "conflict"
            jobs.append(Call(name, outcome, time.perf_counter() - started))
            time.sleep(0.2)
    Path(plan.directory, "keeper.json").write_text(json.dumps([asdict(job) for job in jobs]))
    Path(plan.directory, "history.pickle").write_bytes(pickle.dumps(history))


def jobs_of(table: tf.Table, history: ReplayedHistory) -> dict[str, Callable[[], Any]]:
    def expire() -> None:
        retained = {snapshot.snapshot_id for snapshot in table.refresh().metadata.snapshots}
        table.maintenance.expire_snapshots(snapshot_ids=sorted(retained & set(history.checked[:-1])))

    jobs = table.maintenance
    return {
        "convert": jobs.convert_deletes,
        "compact": jobs.compact,
        "drop dead deletes": jobs.drop_dead_deletes,
        "expire": expire,
    }


@dataclass(frozen=True)
class Run:
    """The results of a run."""

    seconds: float
    calls: dict[str, list[Call]]
    jobs: list[Call]
    history: ReplayedHistory | None

    def committed(self) -> list[Call]:
        """The committed calls in the measured time."""
        return [
            call for calls in self.calls.values() for call in calls if call.is_timed and call.outcome == "committed"
        ]

    def report(self, title: str) -> str:
        """Throughput, and how long each writer waited."""
        committed = self.committed()
        attempts = sum(call.attempts for call in committed) / max(len(committed), 1)
        rate = len(committed) / self.seconds
        lines = [
            f"{title}: {len(self.calls)} writers, {self.seconds:.0f} s, {len(committed)} commits, "
            f"{rate:.1f} commits/s, {attempts:.2f} attempts per commit",
            f"  {'writer':8} {'commits':>8} {'conflicts':>10} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}",
        ]
        lines += [
            f"  {waited.line()}" for waited in map(Waited.of, [*self.calls, "all"], [*self.calls.values(), committed])
        ]
        worst = max((Waited.of(name, calls) for name, calls in self.calls.items()), key=lambda waited: waited.p99)
        lines.append(f"  worst starved: {worst.name}, p99 {worst.p99:.0f} ms, {worst.commits} commits")
        if self.jobs:
            done = [job.value for job in self.jobs if job.outcome == "committed"]
            lines.append(f"  jobs: {len(done)} of {len(self.jobs)} done, the others met a conflict")
        return "\n".join(lines)


@dataclass(frozen=True)
class Waited:
    """How long the commits of a writer took, in milliseconds, from call to return."""

    name: str
    commits: int
    conflicts: int
    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, name: str, calls: Sequence[Call]) -> Waited:
        times = sorted(call.seconds * 1000 for call in calls if call.is_timed and call.outcome == "committed")
        conflicts = sum(call.is_timed and call.outcome == "conflict" for call in calls)
        p50, p99, longest = (times[int((len(times) - 1) * part)] if times else math.inf for part in (0.5, 0.99, 1.0))
        return cls(name, len(times), conflicts, p50, p99, longest)

    def line(self) -> str:
        return f"{self.name:8} {self.commits:8} {self.conflicts:10} {self.p50:8.0f} {self.p99:8.0f} {self.max:8.0f}"


def run_writers(
    lake: Lake, directory: Path, *, writers: int, seconds: float, seed: int = 1, load: str = "mixed"
) -> Run:
    """All processes over the table, until the time is up; an error in one of them is an AssertionError here."""
    directory.mkdir(parents=True)
    names = [f"w{number}" for number in range(writers)]
    start = _SPAWN.Barrier(writers + (load == "mixed"), timeout=300)
    plan = Plan(lake, str(directory), seconds, start, seed, load)
    tasks = [(write, (plan, name)) for name in names]
    if load == "mixed":
        tasks.append((keep, (plan,)))
    processes = [_SPAWN.Process(target=_guarded, args=(directory, task, arguments)) for task, arguments in tasks]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    errors = [path.read_text() for path in sorted(directory.glob("error-*.txt"))]
    assert not errors, "\n".join(errors)
    assert all(process.exitcode == 0 for process in processes), [process.exitcode for process in processes]
    history = directory / "history.pickle"
    return Run(
        seconds,
        {name: _calls(directory / f"{name}.json") for name in names},
        _calls(directory / "keeper.json") if load == "mixed" else [],
        pickle.loads(history.read_bytes()) if load == "mixed" else None,
    )


def _calls(path: Path) -> list[Call]:
    return [Call(**call) for call in json.loads(path.read_text())]


def _guarded(directory: Path, task: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    try:
        task(*arguments)
    except BaseException:
        Path(directory, f"error-{multiprocessing.current_process().pid}.txt").write_text(traceback.format_exc())
        raise
