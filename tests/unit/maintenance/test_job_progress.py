"""Every job reports its progress, and can be cancelled at each report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from maintenance_tables import keyed_table, rows

import tableformat as tf
from tableformat.metadata.reachable_files import reachable_files
from tableformat.testing.table_files import files_on_disk
from tableformat.testing.table_rows import live_tuples

FUTURE = 10**15
SMALL = {"write.target-file-size-bytes": "1500"}

JOBS: dict[str, tuple[str, Callable[..., Any]]] = {
    "convert_deletes": ("data files", lambda job, **options: job.convert_deletes(**options)),
    "compact": ("rows", lambda job, **options: job.compact(min_input_files=2, max_commits=4, **options)),
    "drop_dead_deletes": ("delete files", lambda job, **options: job.drop_dead_deletes(**options)),
    "merge_range_deletes": ("range delete files", lambda job, **options: job.merge_range_deletes(**options)),
    "rewrite_position_delete_files": (
        "data files",
        lambda job, **options: job.rewrite_position_delete_files(rewrite_all=True, **options),
    ),
    "rewrite_manifests": ("manifests", lambda job, **options: job.rewrite_manifests(**options)),
    "compute_table_stats": ("groups of data files", lambda job, **options: job.compute_table_stats(**options)),
    "publish": ("data files", lambda job, **options: job.publish(**options)),
    "expire_snapshots": ("unneeded files", lambda job, **options: job.expire_snapshots(older_than=FUTURE, **options)),
    "remove_orphan_files": (
        "unneeded files",
        lambda job, **options: job.remove_orphan_files(older_than=FUTURE, allow_recent=True, **options),
    ),
    "run": ("jobs", lambda job, **options: job.run(**options)),
}


def worn_table(directory: Path, branch: str = "main") -> tf.Table:
    """Files over one another in two partitions, deletes of every kind, a branch to publish, and an orphan."""
    table = keyed_table(directory, partition_by=("id1",), properties=SMALL)
    for turn in range(4):
        table.append(rows("a", range(turn, 40, 4)))
        table.append(rows("b", range(turn, 40, 4)))
    if branch != "main":
        table.create_branch(branch)
        assert table.catalog is not None
        table = table.catalog.load_table(table.name, branch=branch)
    table.upsert(rows("a", [7], "new"))
    table.delete_prefix({"id1": "a", "id2": 8})
    table.delete_prefix({"id1": "z"})
    table.delete_range(lower=("a", 30), upper=("b", 5))
    table.delete(where="id2 = 9", mode="scan")
    orphan = Path(table.location.removeprefix("file://")) / "data" / "orphan.parquet"
    orphan.write_bytes(b"PAR1")
    return table


def started_on(directory: Path, job: str) -> tf.Table:
    return worn_table(directory, "ingest" if job == "publish" else "main")


def unnamed(table: tf.Table) -> set[str]:
    named = reachable_files(table.metadata, table.iceberg.metadata_location, table.iceberg.io)
    return files_on_disk(table) - set(named)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "stride"),
    [
        pytest.param(KeyboardInterrupt, 3),
        pytest.param(KeyboardInterrupt, 1, marks=pytest.mark.long),
        pytest.param(RuntimeError, 1, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("job", JOBS)
def test_every_job_can_be_cancelled_at_each_step(
    tmp_path: Path, job: str, error: type[BaseException], stride: int
) -> None:
    """MT-62: the rows are unchanged, and every file belongs to a snapshot or existed before."""
    _, run = JOBS[job]
    lake, untouched = tmp_path / "lake", tmp_path / "untouched"
    with started_on(tmp_path, job).catalog:
        shutil.copytree(lake, untouched)
    with reopened(lake, untouched, job) as table:
        before, left_before = live_tuples(table), unnamed(table)
        total = count_of_steps(table, run)
    assert total > 0
    for step in range(0, total, stride):
        with reopened(lake, untouched, job) as table, pytest.raises(error):
            run(table.maintenance, progress=CancelAt(step, error))
        with opened(lake, job) as fresh:
            assert live_tuples(fresh) == before
            if job not in ("expire_snapshots", "run"):
                assert unnamed(fresh) <= left_before
            run(fresh.maintenance)
            assert live_tuples(fresh) == before


@contextmanager
def opened(lake: Path, job: str) -> Iterator[tf.Table]:
    with tf.open_catalog(str(lake)) as catalog:
        yield catalog.load_table("db.t", branch="ingest" if job == "publish" else "main")


@contextmanager
def reopened(lake: Path, untouched: Path, job: str) -> Iterator[tf.Table]:
    """The table as `started_on` created it, at the location in its metadata."""
    shutil.rmtree(lake)
    shutil.copytree(untouched, lake)
    with opened(lake, job) as table:
        yield table


def count_of_steps(table: tf.Table, run: Callable[..., Any]) -> int:
    steps: list[str] = []
    run(table.maintenance, progress=lambda _done, _total, what: steps.append(what))
    return len(steps)


class CancelAt:
    """Raises at one of its calls."""

    def __init__(self, step: int, error: type[BaseException]) -> None:
        self._left = step
        self._error = error

    def __call__(self, done: int, total: int, what: str) -> None:
        if self._left == 0:
            raise self._error("stop")
        self._left -= 1
