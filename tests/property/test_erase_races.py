"""MT-116, MT-118, CP-91: an erasure between the steps of other commits, other commits between its steps, and failures
at its calls to files and to the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from crash_points import Failure
from crash_worlds import VERSIONS, CrashWorld, crash_world, trials
from soak_figures import count
from stepped_jobs import SteppedJob
from test_crash_points import ALL_FAILURES, SAMPLE

import tableformat as tf
from tableformat.errors import CommitConflictError

SENTINEL = "mallory-4711"
SCHEMA = pa.schema([pa.field("who", pa.string(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
QUICK = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "2",
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.max-wait-ms": "2",
    "commit.status-check.num-retries": "2",
    "tableformat.upkeep": "off",
}
Keys = list[tuple[str, int]]


def rows(*keys: tuple[str, int]) -> pa.Table:
    return pa.table({"who": [who for who, _ in keys], "n": [n for _, n in keys]}, schema=SCHEMA)


def make_lake(catalog: tf.Catalog, version: str) -> None:
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, key=["who", "n"], properties={**QUICK, "format-version": version})
    table.append(rows(*((who, n) for n in range(5) for who in ("alice", SENTINEL, "zoe"))))
    table.create_tag("first")
    table.append(rows(("bob", 1), (SENTINEL, 7)))
    table.delete("n = 2", mode="scan")
    table.delete_prefix({"who": SENTINEL, "n": 3})
    table.delete_range(lower=("bob",), upper=(SENTINEL, 1))
    table.delete_prefix({"who": "zoe", "n": 4}, mode="equality")


def lake(directory: Path, version: str = "2") -> tf.Table:
    catalog = tf.open_catalog(str(directory / "lake"))
    make_lake(catalog, version)
    return catalog.load_table("db.t")


def erase(table: tf.Table) -> tf.ErasureCertificate:
    return table.maintenance.erase({"who": SENTINEL})


def keys(table: tf.Table, **at: Any) -> Keys:
    return sorted((row["who"], row["n"]) for row in table.scan(**at).to_arrow().to_pylist())


def others(found: Keys) -> Keys:
    return [key for key in found if key[0] != SENTINEL]


def traces(directory: Path) -> list[str]:
    return [str(each) for each in directory.rglob("*") if each.is_file() and SENTINEL.encode() in each.read_bytes()]


WRITERS: dict[str, Callable[[tf.Table], Any]] = {
    "append": lambda t: t.append(rows(("carol", 1))),
    "delete by scan": lambda t: t.delete("n = 1 AND who = 'alice'", mode="scan"),
    "delete by prefix": lambda t: t.delete_prefix({"who": "alice", "n": 1}),
    "replace": lambda t: t.replace(rows(("alice", 11)), prefix=["who"]),
    "upsert": lambda t: t.upsert(rows(("alice", 1), ("carol", 1))),
    "compact": lambda t: t.maintenance.compact(rewrite_all=True),
    "convert_deletes": lambda t: t.maintenance.convert_deletes(),
    "rewrite_manifests": lambda t: t.maintenance.rewrite_manifests(),
    "create_tag": lambda t: t.create_tag("second"),
    "expire_snapshots": lambda t: t.maintenance.expire_snapshots(older_than=10**15),
}


def crossed_once(first: int) -> list[tuple[str, str]]:
    """Each writer on one version of the format; the two tests take the other one."""
    return [(writer, VERSIONS[(number + first) % 2]) for number, writer in enumerate(WRITERS)]


@pytest.mark.parametrize(("writer", "version"), crossed_once(0))
def test_erasure_during_a_pending_commit(tmp_path: Path, writer: str, version: str) -> None:
    """CP-91: the other commit is made again or fails, and succeeds when it is repeated."""
    table = lake(tmp_path, version)
    expected = others(after(WRITERS[writer], tmp_path / "own", version))
    job = SteppedJob(writer, str(tmp_path / "lake"), WRITERS[writer])
    step_to(job, "commit_table")
    erase(table.refresh())
    job.finish()
    if job.error is not None:
        assert isinstance(job.error, CommitConflictError), job.error
        WRITERS[writer](table.refresh())
    assert keys(table.refresh()) == expected
    assert table.verify(deep=True).errors == ()
    assert erase(table).is_complete
    assert traces(tmp_path / "lake") == []


@pytest.mark.parametrize("stop", ["replace_histories", "commit_table"])
@pytest.mark.parametrize(("writer", "version"), crossed_once(1))
def test_commit_during_a_pending_erasure(tmp_path: Path, writer: str, version: str, stop: str) -> None:
    """MT-116, MT-118: before its commit the erasure plans again, and also reaches what was committed in the meantime.
    Afterwards it removes files while others write."""
    table = lake(tmp_path, version)
    expected = others(after(WRITERS[writer], tmp_path / "own", version))
    job = SteppedJob("erase", str(tmp_path / "lake"), erase)
    step_to(job, stop)
    WRITERS[writer](table.refresh())
    certificate = job.finish()
    assert job.error is None, job.error
    assert keys(table.refresh()) == expected
    assert certificate.is_complete, certificate.tables[0].not_reached
    assert table.verify(deep=True, erased=certificate).errors == ()
    assert traces(tmp_path / "lake") == []


def step_to(job: SteppedJob, stop: str) -> None:
    while job.stopped_at != stop:
        job.step()


def after(write: Callable[[tf.Table], Any], directory: Path, version: str) -> Keys:
    """The rows that the commit leaves, in a lake of its own."""
    own = lake(directory, version)
    write(own)
    return keys(own.refresh())


def test_rows_added_during_an_erasure_are_erased(tmp_path: Path) -> None:
    table = lake(tmp_path)
    job = SteppedJob("erase", str(tmp_path / "lake"), erase)
    step_to(job, "replace_histories")
    table.refresh().append(rows((SENTINEL, 77), ("dave", 1)))
    certificate = job.finish()
    assert certificate.is_complete
    assert ("dave", 1) in keys(table.refresh())
    assert traces(tmp_path) == []


def test_snapshot_staged_during_an_erasure_is_rewritten(tmp_path: Path) -> None:
    """CP-91, SP-23: it has no branch whose head would show the erasure."""
    from pyiceberg.table.snapshots import Operation

    from tableformat.commit.change import TableChange
    from tableformat.commit.transaction import commit_change

    table = lake(tmp_path)

    def stage(other: tf.Table) -> Any:
        files = other.new_write().write(rows(("carol", 1))).data_files
        change = TableChange(operation=Operation.APPEND, added_data_files=files)
        return commit_change(other.iceberg, change, is_staged=True)

    job = SteppedJob("stage", str(tmp_path / "lake"), stage)
    step_to(job, "commit_table")
    erase(table.refresh())
    outcome = job.finish()
    assert job.error is None
    assert others(keys(table.refresh(), snapshot_id=outcome.snapshot_id)) == keys(
        table, snapshot_id=outcome.snapshot_id
    )
    assert table.verify(deep=True).errors == ()
    assert traces(tmp_path) == []


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[CrashWorld]:
    with crash_world(request.param, make_lake) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("world", VERSIONS, indirect=True)
def test_failed_erasure_is_atomic_and_is_completed_by_the_next(world: CrashWorld) -> None:
    """MT-118: at any call to a file or to the catalog."""
    world.restore()
    before = world.rows_of_refs()
    calls = world.count_calls(erase)
    after = world.rows_of_refs()
    assert before != after
    assert traces(world.lake) == []
    for call, failure in trials(calls, ALL_FAILURES, 12 * SAMPLE):
        check_failure(world, call, failure, calls[call], (before, after))


def check_failure(world: CrashWorld, call: int, failure: Failure, name: str, states: tuple[Any, Any]) -> None:
    told = f"erase: {failure} at call {call}, {name}"
    count("crash points")
    error = world.fail(erase, call, failure)
    found = world.rows_of_refs()
    assert found in states, told
    if error is None:
        assert found == states[1], told
    with world.table() as table:
        certificate = erase(table)
        assert certificate.tables[0].not_reached == (), told
    assert world.rows_of_refs() == states[1], told
    assert traces(world.lake) == [], told
    world.check_files()
