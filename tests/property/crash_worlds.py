"""A lake that can be restored to its original state, the state that a new process sees, and the leftovers that a crash
may cause."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from crash_actions import FUTURE, make_lake
from crash_points import Door, Failure
from hypothesis import settings
from long_forms import crossed
from soak_figures import soak_seed

import tableformat as tf
from tableformat.metadata.reachable_files import reachable_files
from tableformat.properties import TRANSACTION_PREFIX
from tableformat.storage.location import local_path

_MEMORY = Path("/dev/shm")
_SOAK_EXAMPLES: Final = 1_000
"""Profiles with so many examples try every call; others a sample."""

VERSIONS: Final = ("2", "3")
State = dict[str, Any]
RefRows = dict[tuple[str, str], list[tuple[Any, ...]]]


class CrashWorld:
    """A directory with a lake, and a copy of it from which each trial starts."""

    def __init__(self, directory: Path, version: str, make: Callable[[tf.Catalog, str], None] = make_lake) -> None:
        self.lake = directory / "lake"
        self._original = directory / "original"
        self.door = Door()
        with tf.open_catalog(str(self.lake)) as catalog:
            make(catalog, version)
        self.lake.rename(self._original)

    def restore(self) -> None:
        shutil.rmtree(self.lake, ignore_errors=True)
        shutil.copytree(self._original, self.lake)

    @contextmanager
    def table(self) -> Iterator[tf.Table]:
        """The handle of a new process: its own catalog, and nothing read yet."""
        with tf.open_catalog(str(self.lake)) as catalog:
            yield catalog.load_table("db.t")

    def state(self) -> State:
        """The state that a new process sees, without values that differ between runs, such as ids and times."""
        with tf.open_catalog(str(self.lake)) as catalog:
            tables = {name: _state_of(catalog.load_table(name)) for name in catalog.list_tables("db")}
            return {"namespaces": catalog.list_namespaces(), "tables": tables}

    def rows_of_refs(self) -> RefRows:
        """The rows that a new process sees, by table and ref."""
        tables = self.state()["tables"]
        return {(table, ref): rows for table, state in tables.items() for ref, rows in state["rows"].items()}

    def count_calls(self, run: Callable[[tf.Table], Any]) -> list[str]:
        """The names of the calls of one run that nothing disturbs."""
        self.restore()
        with self.table() as table, self.door.armed() as door:
            run(table)
            return list(door.calls)

    def fail(self, run: Callable[[tf.Table], Any], call: int, failure: Failure) -> BaseException | None:
        """Run with a failure; what was raised."""
        self.restore()
        with self.table() as table, self.door.armed(call, failure):
            try:
                run(table)
            except BaseException as error:  # noqa: BLE001 - for the test to look at
                return error
        return None

    def check_files(self) -> None:
        """Check that every referenced file exists and is valid, and that orphan removal removes all unreferenced
        files."""
        with tf.open_catalog(str(self.lake)) as catalog:
            for name in catalog.list_tables("db"):
                table = catalog.load_table(name)
                table.maintenance.remove_orphan_files(older_than=FUTURE, allow_recent=True)
                left = unnamed_files(table) - torn_metadata_files(table)
                assert left == set(), f"{name}: not taken for orphans: {sorted(map(str, left))}"
                result = table.verify(deep=True)
                assert result.errors == (), str(result)


@contextmanager
def crash_world(version: str, make: Callable[[tf.Catalog, str], None] = make_lake) -> Iterator[CrashWorld]:
    """A world in memory, if the system has a file system for that."""
    root = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="crash-", dir=root) as directory:
        world = CrashWorld(Path(directory), version, make)
        with world.door.installed():
            yield world


def of_versions(name: str, actions: Iterable[str]) -> pytest.MarkDecorator:
    """Each action on a world of each version of the format; half of them are long."""
    return pytest.mark.parametrize(("world", name), crossed(VERSIONS, list(actions)), indirect=["world"])


def trials(calls: Sequence[str], failures: Sequence[Failure], sample: int) -> list[tuple[int, Failure]]:
    """Every call with every failure if the profile requests it, otherwise a sample of them: a new one each time, unless
    the profile is deterministic."""
    found = [(call, failure) for failure in failures for call in range(len(calls))]
    if settings().max_examples >= _SOAK_EXAMPLES or len(found) <= sample:
        return found
    chance = random.Random(0) if settings().derandomize else random.Random(soak_seed())
    return chance.sample(found, sample)


def refs_of_neither(found: RefRows, before: RefRows, after: RefRows) -> list[tuple[str, str]]:
    """Former refs that are gone, or have other rows than before or after. A tag that records the progress of a job,
    such as publishing, may be at any snapshot."""
    return [ref for ref, rows in before.items() if found.get(ref) not in (rows, after.get(ref, rows))]


def _state_of(table: tf.Table) -> State:
    metadata = table.metadata
    properties = {name: value for name, value in table.properties.items() if not name.startswith(TRANSACTION_PREFIX)}
    return {
        "rows": {name: _rows(table.scan(snapshot_id=ref.snapshot_id)) for name, ref in metadata.refs.items()},
        "format version": metadata.format_version,
        "schema": str(metadata.schema()),
        "key": table.key,
        "partitions": str(metadata.spec()),
        "properties": properties,
    }


def _rows(scan: tf.Scan) -> list[tuple[Any, ...]]:
    columns = scan.to_arrow()
    return sorted(zip(*(column.to_pylist() for column in columns.columns), strict=True), key=repr)


def unnamed_files(table: tf.Table) -> set[Path]:
    """Files of the table's directory that no snapshot, branch, tag or metadata file names."""
    named = reachable_files(table.metadata, table.iceberg.metadata_location, table.iceberg.io)
    paths = {Path(local_path(location) or location) for location in named}
    return {path for path in Path(local_path(table.location) or "").rglob("*") if path.is_file()} - paths


def torn_metadata_files(table: tf.Table) -> set[Path]:
    """Halves of metadata files: their table cannot be determined, so orphan removal keeps them (MT-52)."""
    metadata = Path(local_path(table.location) or "") / "metadata"
    return {path for path in metadata.glob("*.metadata.json") if not path.read_bytes().rstrip().endswith(b"}")}
