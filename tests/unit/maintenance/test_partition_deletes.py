"""Equality deletes and data files of other partition specs: Flink writes the deletes for one partition, this library
for all partitions (decision 51)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from maintenance_tables import KEYED, Meanwhile, another_handle, commit_deletes, keyed_table, rows
from new_lakes import new_lake
from published_tables import opened
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.testing.raw_files import foreign_data_file, foreign_equality_delete
from tableformat.testing.table_files import live_data_files
from tableformat.testing.table_rows import live_tuples
from tableformat.write.context import WriteContext

LEFT = [("a", number, "x") for number in (0, 1, 2, 4)]
"""Rows of `five_rows` without the one that `delete_as_flink` deletes."""


def five_rows(tmp_path: Path) -> tf.Table:
    table = keyed_table(tmp_path, partition_by=("id1",))
    for number in range(5):
        table.append(rows("a", [number]))
    return table


def delete_as_flink(table: tf.Table, spec_id: int = 0) -> None:
    """Row ("a", 3), by an equality delete in its partition."""
    table.refresh()
    delete = foreign_equality_delete(
        WriteContext.of(table.metadata, table.iceberg.io),
        [{"id1": "a", "id2": 3}],
        table.metadata.schema(),
        equality_columns=("id1", "id2"),
        spec_id=spec_id,
        partition=("a",),
    )
    commit_deletes(table, delete)


def evolve(table: tf.Table) -> None:
    with table.refresh().update_spec() as update:
        update.add_field("id2", "bucket[4]")


def add_of_new_spec(table: tf.Table) -> None:
    table.refresh().append(rows("b", [9]))


ALL_LEFT = [*LEFT, ("b", 9, "x")]


@pytest.mark.parametrize("job", ["compact", "convert_deletes", "drop_dead_deletes"])
def test_jobs_after_spec_change_keep_partition_deletes_effective(tmp_path: Path, job: str) -> None:
    """MT-42, DA-3: new files keep the spec of their rows, in which the delete applies to them."""
    table = five_rows(tmp_path)
    for step in (delete_as_flink, evolve, add_of_new_spec):
        step(table)
    if job == "compact":
        assert table.maintenance.compact(rewrite_all=True).rewritten_data_files_count >= 5
    else:
        getattr(table.maintenance, job)()
    assert live_tuples(table.refresh()) == ALL_LEFT
    assert {data.spec_id for data in live_data_files(table) if data.partition[0] == "a"} == {0}


@pytest.mark.parametrize(
    "meanwhile",
    [(delete_as_flink, evolve), (delete_as_flink, evolve, add_of_new_spec), (delete_as_flink,)],
    ids=["delete, spec", "delete, spec, append", "delete"],
)
def test_concurrent_partition_delete_applies_to_compacted_files(
    tmp_path: Path, meanwhile: tuple[Callable[[tf.Table], None], ...]
) -> None:
    """CP-7, MT-42: they have the planned number, and the spec and partition of their rows."""
    table = five_rows(tmp_path)
    other = another_handle(table)
    steps = [partial(step, other) for step in meanwhile]
    result = table.maintenance.compact(rewrite_all=True, progress=Meanwhile(*steps))
    assert result.commit_count == 1
    assert live_tuples(table.refresh()) == (ALL_LEFT if add_of_new_spec in meanwhile else LEFT)
    table.maintenance.convert_deletes()
    assert live_tuples(table.refresh()) == (ALL_LEFT if add_of_new_spec in meanwhile else LEFT)


def test_delete_under_old_spec_applies_to_compacted_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-42: the spec changed before the compaction was planned, and Flink writes on under the old one."""
    table = five_rows(tmp_path)
    evolve(table)
    add_of_new_spec(table)
    other = another_handle(table)
    # Flink does not check this.
    monkeypatch.setattr("tableformat.commit.table_part.check_delete_scope", lambda *_: None)
    table.maintenance.compact(rewrite_all=True, progress=Meanwhile(partial(delete_as_flink, other)))
    assert live_tuples(table.refresh()) == ALL_LEFT
    table.maintenance.compact(rewrite_all=True)
    assert live_tuples(table.refresh()) == ALL_LEFT


def test_restored_files_keep_their_partition_deletes(tmp_path: Path) -> None:
    """RP-13: the spec changed while the rows were retired."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table(
        "db.t",
        KEYED,
        key=["id1", "id2"],
        partition_by=["id1"],
        range_partitions=tf.RangePartitions(on=["id2"], bounds=[(0, 5), (5, 10)]),
    )
    table.append(rows("a", range(5)))
    table.append(rows("b", [9]))
    delete_as_flink(table)
    tag = table.range_partitions.retire((0,), (5,)).tag
    evolve(table)
    table.maintenance.convert_deletes()
    assert tag is not None
    table.range_partitions.restore(tag)
    assert live_tuples(table.refresh()) == ALL_LEFT


def test_global_deletes_apply_to_rows_in_wrong_partitions(tmp_path: Path) -> None:
    """FM-5: writers compute transforms differently, and manifests do not show it."""
    table = keyed_table(tmp_path, partition_by=("id1",))
    misplaced = foreign_data_file(
        WriteContext.of(table.metadata, table.iceberg.io),
        [{"id1": "b", "id2": 1, "payload": "old"}],
        table.metadata.schema(),
        spec_id=0,
        partition=("a",),
    )
    commit_change(table.iceberg, TableChange(operation=Operation.APPEND, added_data_files=(misplaced,)))
    table.refresh().upsert(rows("b", [1], "new"))
    assert [row["payload"] for row in table.scan().to_arrow().to_pylist()] == ["new"]


@pytest.mark.parametrize("verb", ["upsert", "delete_rows"])
def test_branch_deletes_apply_to_carried_rows_of_another_spec(tmp_path: Path, verb: str) -> None:
    """FM-5, MT-31: no data file of the branch's head was of the old spec when the delete was committed."""
    main = keyed_table(tmp_path, partition_by=("id1",))
    main.append(rows("b", [1]))
    main.create_branch("ingest")
    main.append(rows("a", [1], "old"))
    evolve(main)
    ingest = opened(tmp_path, "ingest")
    ingest.delete("id1 = 'b'", mode="scan")
    ingest.append(rows("c", [1]))
    assert {data.spec_id for data in live_data_files(ingest)} == {2}
    keys = pa.table({"id1": ["a"], "id2": [1]})
    _ = ingest.upsert(rows("a", [1], "new")) if verb == "upsert" else ingest.delete_rows(keys)
    main.set_properties(**{"tableformat.publish-target.ingest": "main"})
    main.refresh().maintenance.publish()
    expected = [("a", 1, "new")] if verb == "upsert" else []
    assert live_tuples(main.refresh()) == [*expected, ("c", 1, "x")]
