"""No interleaving of upkeep with writers and with other upkeep loses a row or brings one back."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from example_counts import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st
from new_lakes import new_lake
from soak_figures import count
from stepped_jobs import CancelledError, SteppedJob, every_file_is_a_slice, file_calls_stop

import tableformat as tf
from tableformat.commit.change import KEYED_KINDS, is_keyed
from tableformat.commit.publish_target import PUBLISHED_NUMBER
from tableformat.errors import AlreadyExistsError, CommitConflictError, CorruptFileError, InvalidArgumentError
from tableformat.maintenance.conversion import staged_conversion
from tableformat.maintenance.conversion.staged_conversion import delete_kinds
from tableformat.metadata.content_file import DeleteFile
from tableformat.metadata.reachable_files import reachable_files
from tableformat.metadata.snapshot_choice import view_at
from tableformat.metadata.staged_conversions import staged_conversions
from tableformat.server.served_tables import ServedTables
from tableformat.testing.model import ModelVerbs
from tableformat.testing.table_files import live_delete_files
from tableformat.testing.table_rows import live_tuples

COLUMNS = ("id1", "id2", "payload")
SCHEMA = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("payload", pa.int64()),
    ]
)
READERS: dict[str, Any] = {
    "delete by scan": lambda table, rows: table.delete(f"id2 = {rows[0]['id2']}", mode="scan"),
    "append if new": lambda table, rows: table.append(pa.Table.from_pylist(rows, schema=SCHEMA), on_duplicate="ignore"),
    "overwrite": lambda table, rows: table.overwrite(
        pa.Table.from_pylist(rows, schema=SCHEMA), where=f"id2 = {rows[0]['id2']} AND payload >= 0", allow_outside=True
    ),
}
"""Operations that decide by reading: they are planned on one snapshot and committed on the current head of the
branch."""
FAST = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "2",
    "commit.manifest.min-count-to-merge": "4",
    "tableformat.upkeep.files-per-level": "2",
    "tableformat.upkeep.write-amplification": "1000",
    "tableformat.serve.staged-max-age-ms": "0",
}
FUTURE = 10**15
ID1, ID2 = st.sampled_from("ab"), st.integers(0, 5)
IDS = st.lists(ID2, min_size=1, max_size=4, unique=True)


SERVED: WeakKeyDictionary[Any, ServedTables] = WeakKeyDictionary()


def serve_twice(table: tf.Table) -> None:
    """Two loads by a client. Conversions use files and manifests of earlier ones again (SV-4)."""
    catalog = table.iceberg.catalog
    tables = SERVED.setdefault(catalog, ServedTables(catalog, 0))
    with patch.object(staged_conversion, "_MANIFEST_ENTRIES", 2):
        for _ in range(2):
            tables.load(("db", "t"))


JOBS: dict[str, Any] = {
    "convert": lambda table: table.maintenance.convert_deletes(partial_progress=False),
    "convert in slices": lambda table: table.maintenance.convert_deletes(),
    "convert some": lambda table: table.maintenance.convert_deletes(where="id1 = 'a'"),
    "drop dead": lambda table: table.maintenance.drop_dead_deletes(),
    "merge ranges": lambda table: table.maintenance.merge_range_deletes(),
    "positions": lambda table: table.maintenance.rewrite_position_delete_files(),
    "compact": lambda table: table.maintenance.compact(min_input_files=2, delete_ratio_threshold=0.01),
    "compact all": lambda table: table.maintenance.compact(rewrite_all=True, partial_progress=False),
    "upkeep": lambda table: table.maintenance.upkeep(),
    "manifests": lambda table: table.maintenance.rewrite_manifests(),
    "expire": lambda table: table.maintenance.expire_snapshots(older_than=FUTURE),
    "orphans": lambda table: table.maintenance.remove_orphan_files(),
    "publish": lambda table: table.maintenance.publish(),
    "serve": serve_twice,
}
"""Each of them may give up if others committed first, without harm."""


class World:
    """A table, its expected rows, and running jobs. Writers run at once, jobs one call at a time."""

    def __init__(self, version: str, first: list[int], pace: int | None = None) -> None:
        """`pace`: the number of calls to files and to the catalog in one step of a job. None: a step goes from one call
        to the catalog to the next."""
        self.pace = pace
        self.directory = tempfile.mkdtemp()
        catalog = new_lake(f"{self.directory}/lake")
        properties = {**FAST, "format-version": version}
        self.table = catalog.create_table("db.t", SCHEMA, key=["id1", "id2"], properties=properties)
        self.main = self.table
        self.model = ModelVerbs(COLUMNS, ("id1", "id2"))
        self.running: list[SteppedJob] = []
        self.kept: dict[str, list[tuple[Any, ...]]] = {}
        self.stamp = 0
        self.append("a", first)
        self.append("b", first)

    def publishing(self) -> World:
        """Writers move to the branch `ingest`; others may append to `main`."""
        self.table.create_branch("ingest")
        self.table.set_properties(**{"tableformat.publish-target.ingest": "main"})
        self.main = tf.open_catalog(f"{self.directory}/lake").load_table("db.t")
        self.table = self.table.catalog.load_table("db.t", branch="ingest")
        return self

    # -- writers ------------------------------------------------------------------------------------------------------

    def append(self, id1: str, ids: list[int]) -> None:
        self._append_to(self.table, id1, ids)

    def append_to_main(self, id1: str, ids: list[int]) -> None:
        self._append_to(self.main, id1, ids)

    def _append_to(self, table: tf.Table, id1: str, ids: list[int]) -> None:
        rows = self._rows(id1, ids)
        table.refresh().append(pa.Table.from_pylist(rows, schema=SCHEMA))
        self.model.append(rows)

    def upsert(self, id1: str, ids: list[int]) -> None:
        rows = self._rows(id1, ids)
        self.table.refresh().upsert(pa.Table.from_pylist(rows, schema=SCHEMA))
        self.model.upsert(rows)

    def delete_prefix(self, id1: str, id2: int | None) -> None:
        prefix = {"id1": id1} if id2 is None else {"id1": id1, "id2": id2}
        self.table.refresh().delete_prefix(prefix)
        self.model.delete_prefix(prefix)

    def delete_range(self, id1: str, lower: int, length: int) -> None:
        bounds = {"lower": (id1, lower), "upper": (id1, lower + length)}
        self.table.refresh().delete_range(**bounds)
        self.model.delete_range(**bounds)

    def delete_found_rows(self, id2: int) -> None:
        self.table.refresh().delete(where=f"id2 = {id2}", mode="scan")
        self.model.delete(lambda row: row["id2"] == id2)

    def come_back(self, which: int) -> None:
        """LK-31: a file that is not live is added, regardless of a job that is about to remove it."""
        table = self.table.refresh()
        paths = sorted(Path(table.location.removeprefix("file://"), "data").rglob("*.parquet"))
        path = paths[which % len(paths)]
        try:
            rows = pq.read_table(path)
            if "payload" not in rows.column_names:
                return  # Of deletes.
            table.add_files([f"file://{path}"])
        except (pa.ArrowInvalid, AlreadyExistsError, CorruptFileError, InvalidArgumentError) as error:
            event(f"comes back: {type(error).__name__}")
            return
        event("comes back")
        self.model.append(rows.select(COLUMNS).to_pylist())

    def read_and_decide(self, verb: str, rows: list[dict[str, Any]]) -> None:
        """Apply an operation of READERS to the model."""
        id2 = rows[0]["id2"]
        if verb == "delete by scan":
            self.model.delete(lambda row: row["id2"] == id2)
        elif verb == "append if new":
            self.model.append(rows, on_duplicate="ignore")
        else:
            self.model.overwrite(rows, where=lambda row: row["id2"] == id2, allow_outside=True)

    def tag(self) -> None:
        if len(self.kept) < 3:
            name = f"t{len(self.kept)}"
            self.table.refresh().create_tag(name)
            self.kept[name] = self.expected()

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def start(self, name: str, steps: int) -> SteppedJob:
        if name == "orphans":
            self._age_what_is_named()
        if len(self.running) == 3:
            self.end(self.running[0])
        job = self._stepped(name, JOBS[name])
        self.running.append(job)
        self._step(job, steps)
        return job

    def step(self, which: int, steps: int) -> None:
        if self.running:
            self._step(self.running[which % len(self.running)], steps)

    def finish(self, which: int) -> None:
        if self.running:
            self.end(self.running[which % len(self.running)])

    def _stepped(self, name: str, run: Any) -> SteppedJob:
        directory, at_files = f"{self.directory}/lake", self.pace is not None
        return SteppedJob(name, directory, run, branch=self.table.branch, at_files=at_files)

    def _go_on(self, job: SteppedJob, steps: int) -> None:
        for _ in range(steps * (self.pace or 1)):
            if not job.is_done:
                job.step()

    def _step(self, job: SteppedJob, steps: int) -> None:
        self._go_on(job, steps)
        if job.is_done:
            self.end(job)

    def end(self, job: SteppedJob) -> None:
        if job not in self.running:
            return
        job.finish()
        self.running.remove(job)
        event(f"{job.name}: {type(job.error).__name__ if job.error is not None else 'done'}")
        # A file of an expired snapshot that a job was still reading: the job ends, and nothing was changed by it.
        if job.error is not None and not isinstance(job.error, CommitConflictError | CorruptFileError | CancelledError):
            raise job.error

    def race(self, id2: int, first: int) -> None:
        """The known way to bring rows back: a compaction is planned, rows are deleted, the deletes are converted and
        dropped, and the compaction commits last. It is rare by chance, so it is a separate act."""
        compaction = self.start("compact all", first)
        self.delete_prefix("a", id2)
        for name in ("convert", "drop dead"):
            self.end(self.start(name, 1))
        self.end(compaction)

    def rollback_race(self, verb: str, id1: str, ids: list[int], delete: str, steps: int) -> None:
        """CP-22: rows are deleted, an operation searches for them, the delete is undone, and the operation commits.
        Running jobs see the rollback too."""
        if len(self.running) == 3:
            self.end(self.running[0])
        before, rows_before = self.table.refresh().snapshot_id, list(self.model.current)
        if delete == "positions":
            self.delete_found_rows(ids[0])
        else:
            self.delete_prefix(id1, ids[0])
        rows = self._rows(id1, ids)
        deleted = self.table.refresh().snapshot_id
        reader = self._stepped(verb, partial(READERS[verb], rows=rows))
        self._go_on(reader, steps)
        was_undone = reader.is_done or self.table.refresh().snapshot_id != deleted
        if self.table.refresh().snapshot_id != before:
            self.table.rollback(snapshot_id=before)
        self.model.current = rows_before
        reader.finish()
        event(f"{verb}: {'was undone' if was_undone else 'met a rollback'}")
        if reader.error is not None:
            raise reader.error
        if not was_undone:
            self.read_and_decide(verb, rows)

    def publishing_race(self, id2: int, first: int, ids: list[int]) -> None:
        """Rows are added to `main` and deleted on the branch while it is being published."""
        self.upsert("b", [id2])
        publishing = self.start("publish", first)
        if ids:
            self.append_to_main("a", ids)
        self.delete_prefix("a", id2)
        self.end(publishing)

    def stop(self, which: int, id2: int) -> None:
        """A conversion that has committed some of its slices is cancelled; another one, later, relies on these."""
        job = self.start("convert in slices", which)
        self.delete_prefix("a", id2)
        if job in self.running:
            job.cancel()
            self.end(job)

    def layers(self, id1: str, lower: int, ids: list[int], job: str) -> None:
        """Rows written between two overlapping deletes, and a job that reads only deletes."""
        self.delete_range(id1, lower, 3)
        self.append(id1, ids)
        self.delete_range(id1, lower + 1, 1)
        self.start(job, 12)

    # -- what holds ---------------------------------------------------------------------------------------------------

    def contents(self, **at: Any) -> list[tuple[Any, ...]]:
        return live_tuples(self.table.refresh(), **at)

    def expected(self) -> list[tuple[Any, ...]]:
        return sorted(tuple(row[name] for name in COLUMNS) for row in self.model.current)

    def keyed_deletes_of_main(self) -> list[DeleteFile]:
        return [delete for delete in live_delete_files(self.main.refresh()) if is_keyed(delete)]

    def check_published_beside(self) -> None:
        """LK-16: such a snapshot has the rows of its parent, which belongs to the branch."""
        for snapshot in self.main.refresh().metadata.snapshots:
            if snapshot.summary is not None and snapshot.summary.get(PUBLISHED_NUMBER) is not None:
                event("published beside")
                parent_id = snapshot.parent_snapshot_id
                if self.main.metadata.snapshot_by_id(parent_id) is not None:
                    planned = self.contents(snapshot_id=parent_id)
                    assert self.contents(snapshot_id=snapshot.snapshot_id) == planned

    def check_staged(self) -> None:
        """SV-1, SV-2: a staged conversion has the rows of its source, and no keyed delete."""
        table = self.table.refresh()
        for source_id, staged in staged_conversions(table.metadata).items():
            event("staged conversion")
            if table.metadata.snapshot_by_id(source_id) is not None:
                assert self.contents(snapshot_id=staged.snapshot_id) == self.contents(snapshot_id=source_id)
            kinds = delete_kinds(view_at(table.metadata, table.iceberg.io, staged.snapshot_id))
            assert KEYED_KINDS.isdisjoint(kinds)

    def compact_for_all_engines(self) -> None:
        """MT-95: regardless of the deletes, PyIceberg reads the same rows afterwards."""
        table = self.table.refresh()
        table.maintenance.compact(rewrite_all=True)
        assert live_delete_files(table) == []
        found = table.iceberg.scan().to_arrow().select(COLUMNS).to_pylist()
        assert self.contents() == sorted(tuple(row.values()) for row in found) == self.expected()

    def close(self) -> None:
        for job in self.running:
            job.finish()
        self.table.catalog.close()
        self.main.catalog.close()
        shutil.rmtree(self.directory)

    def _rows(self, id1: str, ids: list[int]) -> list[dict[str, Any]]:
        self.stamp += 1
        return [{"id1": id1, "id2": id2, "payload": self.stamp} for id2 in ids]

    def _age_what_is_named(self) -> None:
        """Make all referenced files old, so that no needed file is kept only because of its age. Files of pending
        commits stay young."""
        table = self.table.refresh()
        moment = time.time() - 9 * 24 * 3600
        for location in reachable_files(table.metadata, table.iceberg.metadata_location, table.iceberg.io):
            path = location.removeprefix("file://")
            if os.path.exists(path):
                os.utime(path, (moment, moment))


def act(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *arguments)


WRITES = st.one_of(
    act("append", ID1, IDS),
    act("upsert", ID1, IDS),
    act("delete_prefix", ID1, st.none() | ID2),
    act("delete_range", ID1, ID2, st.integers(1, 3)),
)
STEPS = st.one_of(act("step", st.integers(0, 2), st.integers(1, 6)), act("finish", st.integers(0, 2)))


def starts(*names: str) -> st.SearchStrategy[tuple[Any, ...]]:
    return act("start", st.sampled_from(names), st.integers(0, 12))


READS = st.integers(1, 3)
PACES = st.none() | st.sampled_from([1, 3, 8, 20])
UPKEEP = st.one_of(
    WRITES,
    act("delete_found_rows", ID2),
    act("come_back", st.integers(0, 30)),
    STEPS,
    starts(*sorted(set(JOBS) - {"publish"})),
    starts("compact all", "convert", "convert in slices", "expire", "serve"),
    act("stop", st.integers(3, 12), ID2),
    act("race", ID2, st.integers(1, 8)),
    act("layers", ID1, ID2, IDS, st.sampled_from(["merge ranges", "drop dead"])),
    act("rollback_race", st.sampled_from(sorted(READERS)), ID1, IDS, st.sampled_from(["range", "positions"]), READS),
    act("tag"),
)
PUBLISHING = st.one_of(
    WRITES,
    act("append_to_main", ID1, IDS),
    STEPS,
    starts("convert", "convert in slices", "drop dead", "merge ranges", "compact all", "expire", "publish"),
    act("publishing_race", ID2, st.integers(1, 30), st.just([]) | IDS),
)


@pytest.fixture(scope="module", autouse=True)
def _files() -> Iterator[None]:
    with file_calls_stop():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2", "3"])
@settings(max_examples=examples(0.1))
@given(first=IDS, acts=st.lists(UPKEEP, min_size=8, max_size=25), pace=PACES)
def test_interleaved_jobs_and_writers_keep_the_rows(
    version: str, first: list[int], acts: list[tuple[Any, ...]], pace: int | None
) -> None:
    """MT-3, MT-10, MT-11, MT-12, MT-14, MT-15, MT-51, MT-95, CP-7 to CP-11, CP-21, CP-22: jobs change how rows are
    stored. They never change which rows exist, nor the rows of tags."""
    world = World(version, first, pace)
    with every_file_is_a_slice(), closing(world):
        for name, *arguments in acts:
            getattr(world, name)(*arguments)
            count("operations")
            assert world.contents() == world.expected()
            if name in ("start", "step", "finish"):
                world.check_staged()
        while world.running:
            world.end(world.running[0])
            assert world.contents() == world.expected()
        world.check_staged()
        world.compact_for_all_engines()
        for tag, expected in world.kept.items():
            assert world.contents(tag=tag) == expected


@pytest.mark.slow
@pytest.mark.parametrize("rounds_together", [0, 3])
@settings(max_examples=examples(0.1))
@given(first=IDS, acts=st.lists(PUBLISHING, min_size=8, max_size=25), pace=PACES)
def test_publish_interleaved_with_writers_of_both_branches(
    rounds_together: int, first: list[int], acts: list[tuple[Any, ...]], pace: int | None
) -> None:
    """MT-30 to MT-33, LK-16: `main` never shows an equality or range delete. The rows that are published at the end are
    the rows that were written to both branches in the order of the commits, by sequence number."""
    world = World("2", first, pace).publishing()
    moving_alone = patch("tableformat.maintenance.publish._ROUNDS_TOGETHER", rounds_together)
    with every_file_is_a_slice(), moving_alone, closing(world):
        for name, *arguments in acts:
            getattr(world, name)(*arguments)
            count("operations")
            assert world.keyed_deletes_of_main() == []
            world.check_published_beside()
        while world.running:
            world.end(world.running[0])
        world.main.refresh().maintenance.publish()
        assert world.contents() == world.contents(branch="main") == world.expected()
