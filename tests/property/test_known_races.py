"""Races that lost rows or brought them back: the two known ways in which upkeep of other engines loses deletes, step by
step, and races that the model has found here."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from stepped_jobs import SteppedJob

import tableformat as tf
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("payload", pa.string())])


def two_files(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id"], properties={"commit.retry.min-wait-ms": "1"})
    for first in (0, 10):
        ids = list(range(first, first + 10))
        table.append(pa.table({"id": ids, "payload": ["x"] * 10}, schema=SCHEMA))
    return table


def compaction(tmp_path: Path) -> SteppedJob:
    return SteppedJob("compaction", str(tmp_path / "lake"), lambda table: table.maintenance.compact(rewrite_all=True))


@pytest.mark.parametrize("steps", range(1, 9))
@pytest.mark.parametrize("converted", [False, True])
def test_delete_during_compaction_stays_effective(tmp_path: Path, steps: int, converted: bool) -> None:
    """CP-7, CP-9 (apache/iceberg 10312): planned, a row deleted by key, the delete converted and dropped, committed."""
    table = two_files(tmp_path)
    job = compaction(tmp_path)
    for _ in range(steps):
        if not job.is_done:
            job.step()
    table.refresh().delete_rows(pa.table({"id": pa.array([3], pa.int64())}))
    if converted:
        table.maintenance.convert_deletes()
        table.maintenance.drop_dead_deletes()
    job.finish()
    assert job.error is None
    assert live_values(table.refresh(), "id") == [number for number in range(20) if number != 3]


@pytest.mark.parametrize("steps", range(1, 9))
def test_position_delete_during_compaction_stays_effective(tmp_path: Path, steps: int) -> None:
    """CP-8 (nimtable/iceberg-compaction 163): the delete names rows of a file that the compaction replaces."""
    table = two_files(tmp_path)
    job = compaction(tmp_path)
    for _ in range(steps):
        if not job.is_done:
            job.step()
    table.refresh().delete(where="id = 3", mode="scan")
    job.finish()
    assert job.error is None
    assert live_values(table.refresh(), "id") == [number for number in range(20) if number != 3]


@pytest.mark.parametrize("upkeep", ["off", "writer"])
@pytest.mark.parametrize("verb", ["merge", "append"])
def test_stale_handle_inserts_rows_deleted_concurrently(tmp_path: Path, upkeep: str, verb: str) -> None:
    """CP-38: the row was there when the handle was loaded, so nothing was inserted, and the table had neither."""
    table = two_files(tmp_path)
    table.set_properties({"tableformat.upkeep": upkeep})
    assert table.catalog is not None
    stale = table.catalog.load_table("db.t")
    table.refresh().delete(where="id = 3", mode="scan")
    given = pa.table({"id": [3, 4], "payload": ["y", "y"]}, schema=SCHEMA)
    if verb == "append":
        stale.append(given, on_duplicate="ignore")
    else:
        stale.merge(given, on=["id"]).when_not_matched_insert_all().execute()
    rows = table.refresh().scan().to_arrow()
    assert dict(zip(rows["id"].to_pylist(), rows["payload"].to_pylist(), strict=True)) == {
        **dict.fromkeys(range(20), "x"),
        3: "y",
    }
