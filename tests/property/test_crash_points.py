"""A crash at any call to files or to the catalog leaves the table as before or as after, and repeating the call
completes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from crash_actions import CHANGES_OF_METADATA, JOBS, VERBS
from crash_points import DEATHS, Failure
from crash_worlds import VERSIONS, CrashWorld, crash_world, of_versions, refs_of_neither, trials
from soak_figures import count

from tableformat.errors import CommitStateUnknownError

BATCH: dict[str, Any] = {"application_id": "writer", "batch_id": 7}
ALL_FAILURES = tuple(Failure)
SAMPLE = int(os.environ.get("SOAK_CRASH_POINTS", "1"))
"""Failures that the short form puts into one action, of about 150; `make soak` puts all of them."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[CrashWorld]:
    with crash_world(request.param) as found:
        yield found


@pytest.mark.parametrize("world", VERSIONS, indirect=True)
def test_restored_lake_has_no_findings(world: CrashWorld) -> None:
    world.restore()
    world.check_files()


@of_versions("verb", VERBS)
def test_crashed_operation_is_atomic_and_its_batch_commits_once(world: CrashWorld, verb: str) -> None:
    """CP-13, CP-18, PR-1: the rows from before or after the call; after the repeated call, the rows from after."""
    run = partial(VERBS[verb], **BATCH)
    world.restore()
    before = world.state()
    calls = world.count_calls(run)
    after = world.state()
    assert before != after
    for call, failure in trials(calls, ALL_FAILURES, SAMPLE):
        told = f"{verb}: {failure} at call {call}, {calls[call]}"
        count("crash points")
        error = world.fail(run, call, failure)
        found = world.state()
        assert found in (before, after), told
        check_answer(error, failure, told, committed=found == after, changed=found != before)
        with world.table() as table:
            result = run(table)
            assert result.already_applied == (found == after), told
        assert world.state() == after, told
        world.check_files()


@of_versions("change", CHANGES_OF_METADATA)
def test_crashed_metadata_change_is_atomic(world: CrashWorld, change: str) -> None:
    """Refs, schema, partitions, key, properties, and the tables of the catalog."""
    run = CHANGES_OF_METADATA[change]
    world.restore()
    before = world.state()
    calls = world.count_calls(run)
    after = world.state()
    for call, failure in trials(calls, ALL_FAILURES, SAMPLE):
        told = f"{change}: {failure} at call {call}, {calls[call]}"
        count("crash points")
        error = world.fail(run, call, failure)
        found = world.state()
        assert found in (before, after), told
        if error is None:
            assert found == after, told
        world.check_files()


@of_versions("job", JOBS)
def test_crashed_job_changes_no_row(world: CrashWorld, job: str) -> None:
    """MT-1: and the next run of it does the rest. Publishing moves rows between branches, each as a whole."""
    run = JOBS[job]
    world.restore()
    before = world.rows_of_refs()
    calls = world.count_calls(run)
    after = world.rows_of_refs()
    assert (before == after) == (job != "publish")
    for call, failure in trials(calls, ALL_FAILURES, SAMPLE):
        told = f"{job}: {failure} at call {call}, {calls[call]}"
        count("crash points")
        world.fail(run, call, failure)
        found = world.rows_of_refs()
        assert refs_of_neither(found, before, after) == [], told
        with world.table() as table:
            run(table)
        assert world.rows_of_refs() == after, told
        world.check_files()


def check_answer(error: BaseException | None, failure: Failure, told: str, *, committed: bool, changed: bool) -> None:
    """A surviving caller gets a correct answer: success means committed. An error means that nothing was changed,
    unless it says that the outcome is unknown."""
    if failure in DEATHS or failure in (Failure.INTERRUPTED, Failure.LATE):
        return
    if error is None:
        assert committed, told
    elif not isinstance(error, CommitStateUnknownError):
        assert not changed, f"{told}: {error!r}"
