"""A process that is killed during an operation or a job, at any moment: also between the calls at which `crash_points`
stops."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from crash_actions import JOBS, VERBS
from crash_worlds import CrashWorld, crash_world, of_versions, refs_of_neither
from example_counts import examples
from soak_figures import count

ACTIONS = [
    "upsert",
    "transaction",
    "transaction of several tables",
    "staged replace",
    "compact of all",
    "publish",
    "expire_snapshots",
]
BATCH: dict[str, Any] = {"application_id": "writer", "batch_id": 7}
CHILD = """
import sys
import tableformat as tf
from crash_actions import JOBS, VERBS

lake, name = sys.argv[1:]
with tf.open_catalog(lake) as catalog:
    table = catalog.load_table("db.t")
    print("ready", flush=True)
    sys.stdin.readline()
    if name in VERBS:
        VERBS[name](table, application_id="writer", batch_id=7)
    else:
        JOBS[name](table)
    print("done", flush=True)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[CrashWorld]:
    with crash_world(request.param) as found:
        yield found


@of_versions("name", ACTIONS)
def test_killed_process_leaves_operations_atomic(world: CrashWorld, name: str) -> None:
    """CP-13, CP-18, MT-1: and the next process finishes what it began, once."""
    run = partial(VERBS[name], **BATCH) if name in VERBS else JOBS[name]
    world.restore()
    before = world.rows_of_refs()
    started = time.perf_counter()
    with world.table() as table:
        run(table)
    seconds = time.perf_counter() - started
    after = world.rows_of_refs()
    for _ in range(examples(0.01)):
        world.restore()
        count("kills")
        kill_within(world.lake, name, random.uniform(0, 1.5 * seconds))
        found = world.rows_of_refs()
        assert refs_of_neither(found, before, after) == []
        if name in VERBS:
            assert found in (before, after)
        with world.table() as table:
            run(table)
        assert world.rows_of_refs() == after
        world.check_files()


def kill_within(lake: Path, name: str, seconds: float) -> None:
    """Run the action in a separate process and kill it after this number of seconds, or when it is done."""
    path = [str(Path(__file__).parent), *sys.path]
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}\n{CHILD}", str(lake), name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(seconds)
        process.kill()
    assert process.returncode in (0, -signal.SIGKILL)
