"""Fixtures and settings that tests of several folders need."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import engine

from tableformat.demo.java_runtime import INSTALL_HINT, find_java

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

REPOSITORY = Path(__file__).parents[1]

SPARK_CLASSES: Final = Path(sys.prefix) / "spark-classes.jsa"
"""The archive that `tests/spark/class_archive.py` writes for `make test`. Java ignores it if it is missing or from
another Java."""

# The JVM's second compiler takes as much CPU time as the tests do, and does not save as much. Without it the code cache
# has 48 MB, too few for all statements: the JVM then throws compiled code away and compiles it again.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable -XX:+IgnoreUnrecognizedVMOptions "
    "-XX:ReservedCodeCacheSize=240m -XX:-MethodFlushing -XX:MetaspaceSize=256m "
    f"-XX:SharedArchiveFile={SPARK_CLASSES}",
)

OWN_JAVA: Final = frozenset(
    {
        "test_spark_distributed_jobs.py::test_jobs_on_spark_connect",
        "test_spark_setup.py::test_configure_with_running_spark_suggests_attach",
        "test_spark_setup.py::test_spark_connect",
        "test_spark_setup.py::test_spark_sql_shell",
        "test_spark_setup.py::test_stream_through_spark_connect",
        "test_spark_setup.py::test_jar_build_is_reproducible",
    }
)
"""Tests under tests/spark that do not use the shared session and take long: they may run concurrently with the
others."""

SPARK_OF_MAKE_TEST: Final = frozenset(
    f"test_spark_{name}.py"
    for name in (
        "smoke",
        "deletes_on_read",
        "delete_statements",
        "insert",
        "procedures",
        "replace_prefix",
        "row_level",
        "sql_extension",
        "time_travel",
    )
)
"""One test for each mechanism: `make test` runs these files of tests/spark, `make check` and CI run all."""
IS_MAKE_TEST: Final = "TABLEFORMAT_MAKE_TEST" in os.environ

SPARK_SESSIONS: Final = 2
MEMORY: Final = Path("/dev/shm")
ROOM_FOR_LAKES: Final = 4_000_000_000
"""Bytes; a container often has 64 MB there."""

# Examples access the disk, so their time means nothing; the profile sets the number of examples.
_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    # Explaining a failing example takes many more runs of it.
    "phases": [phase for phase in Phase if phase is not Phase.explain],
}

SHRINKING_SECONDS: Final = 20
"""How long a failing example is shrunk, instead of Hypothesis's five minutes, during which a run seems to hang. The
example database keeps the smallest example so far, and the next run continues from it."""
assert engine.MAX_SHRINKING_SECONDS >= SHRINKING_SECONDS  # equal where one process loads this twice, as mutmut does
engine.MAX_SHRINKING_SECONDS = SHRINKING_SECONDS
settings.register_profile("ci", max_examples=20, derandomize=True, **_COMMON)
settings.register_profile("dev", max_examples=20 if "TABLEFORMAT_MAKE_TEST" in os.environ else 50, **_COMMON)
settings.register_profile("soak", max_examples=5_000, **_COMMON)
# One of many rounds of `make soak`, each with its own seed; failures are repeated by seed.
settings.register_profile("round", max_examples=int(os.environ.get("SOAK_EXAMPLES", "100")), database=None, **_COMMON)
PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev")
settings.load_profile(PROFILE)


def pytest_configure() -> None:
    """Put the lakes of tests into memory if the system has a file system for that: a commit to SQLite waits for the
    disk, and tests make thousands of commits."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM_FOR_LAKES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """With `pytest -n`: the tests that share a process, by their ids. The process that distributes tests knows only
    ids. The mark `xdist_group` does not work, because pytest 9.2 keeps xdist 3.8 from writing it into the ids."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return Scheduler(config, log)


def scope_of(test_id: str) -> str:
    """Tests stay with their file, whose fixtures they share. Spark tests share two sessions. With one, the other
    processes would be done long before it; each further one has to warm up."""
    path, _, name = test_id.partition("::")
    if path.startswith("tests/property/") or f"{Path(path).name}::{name}" in OWN_JAVA:
        return test_id
    if path.startswith("tests/spark/"):
        return f"tests/spark {crc32(path.encode()) % SPARK_SESSIONS}"
    return path


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the tests: long forms run only in `make test-long`, slow tests and most of tests/spark not in `make test`.

    With `pytest -n` files do not run in sequence: tests of the Spark session start first, because they are the most,
    then slow tests, so that no process is left with a slow one at the end.
    """
    if PROFILE != "soak":
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    if IS_MAKE_TEST:
        config.hook.pytest_deselected(items=[item for item in items if not _is_of_make_test(item)])
        items[:] = [item for item in items if _is_of_make_test(item)]
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: ("spark" not in fixtures_of(item), item.get_closest_marker("slow") is None))


def _is_of_make_test(item: pytest.Item) -> bool:
    if item.get_closest_marker("slow"):
        return False
    return "tests/spark/" not in item.nodeid or item.path.name in SPARK_OF_MAKE_TEST


def fixtures_of(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


@pytest.fixture(scope="session")
def needs_java() -> None:
    """Skips with the reason if Spark cannot run; in CI that is a failure."""
    if find_java() is None:
        if os.environ.get("CI"):
            pytest.fail(INSTALL_HINT)
        pytest.skip(INSTALL_HINT)
