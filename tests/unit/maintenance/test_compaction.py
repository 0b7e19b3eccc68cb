"""Compaction keeps every live row, drops deleted ones, and works with concurrent writers."""

from __future__ import annotations

import itertools
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from maintenance_tables import Meanwhile, another_handle, five_files, keyed_table, rows, table_of
from new_lakes import new_lake
from pyiceberg.table.snapshots import Operation
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.errors import CorruptFileError, InvalidArgumentError
from tableformat.keys.sort_marker import sorted_by
from tableformat.maintenance.compaction.compaction_choice import plan_compaction
from tableformat.maintenance.compaction.compaction_plan import CompactionOptions
from tableformat.maintenance.compaction.rewrite_group import RewriteContext, RewriteTask, rewrite_group
from tableformat.metadata.content_file import DeleteKind
from tableformat.testing.table_files import files_on_disk, live_data_files, live_delete_files
from tableformat.testing.table_rows import live_rows, live_tuples


def ids_of(table: tf.Table) -> list[int]:
    return [row[1] for row in live_tuples(table)]


# -- what comes out ---------------------------------------------------------------------------------------------------


def test_small_files_become_one_sorted_file_with_the_planned_number(tmp_path: Path) -> None:
    """MT-43, MT-46, CP-7: operation replace, the old files out, the new one in."""
    table = table_of(tmp_path, range(40, 50), range(0, 10), range(20, 40), range(10, 20), range(5, 8))
    planned = table.view.sequence_number
    before = live_tuples(table)
    result = table.maintenance.compact()
    (data,) = live_data_files(table)
    assert live_tuples(table) == before
    assert (data.sequence_number, data.record_count) == (planned, 53)
    assert (result.rewritten_data_files_count, result.added_data_files_count, result.deleted_row_count) == (5, 1, 0)
    assert (result.group_count, result.commit_count, result.failed_group_count) == (1, 1, 0)
    assert result.snapshot_id == table.snapshot_id
    assert result.written_bytes == data.file_size_bytes
    snapshot = table.view.snapshot
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation is Operation.REPLACE
    assert snapshot.summary["total-records"] == "53"
    stored = pq.read_table(data.file_path.removeprefix("file://"))
    assert stored["id2"].to_pylist() == sorted(row[1] for row in before)
    assert sorted_by(pq.read_metadata(data.file_path.removeprefix("file://")).metadata) == (1, 2)


def test_deleted_rows_and_their_position_deletes_are_removed(tmp_path: Path) -> None:
    """MT-43, MT-46"""
    table = table_of(tmp_path, range(10), range(10, 20))
    table.delete("id2 in (1, 2, 3, 4)", mode="scan")
    table.delete("id2 in (12, 13, 14, 15)", mode="scan")
    assert [delete.kind for delete in live_delete_files(table)] == [DeleteKind.POSITION] * 2
    before = live_tuples(table)
    result = table.maintenance.compact(depth="fold")
    assert live_tuples(table) == before
    assert live_delete_files(table) == []
    assert sorted(data.record_count for data in live_data_files(table)) == [6, 6]
    assert (result.removed_position_delete_files_count, result.deleted_row_count) == (2, 8)


def test_keyed_deletes_no_longer_apply_to_rewritten_files(tmp_path: Path) -> None:
    """CP-7, DA-2, RD-2: the new file has the sequence number of the newest delete."""
    table = table_of(tmp_path, range(10), range(10, 20))
    table.delete_range(lower=("a", 5), upper=("a", 15))
    table.delete_rows(pa.table({"id1": ["a"] * 3, "id2": [0, 1, 2]}))
    before = live_tuples(table)
    table.maintenance.compact(drop_dead_deletes=False)
    assert live_tuples(table) == before
    assert sorted(delete.kind.value for delete in live_delete_files(table)) == ["equality", "range"]
    assert all(not task.has_deletes for task in table.scan().plan().tasks)
    result = table.maintenance.convert_deletes()
    assert (result.resolved_data_files_count, live_delete_files(table), live_tuples(table)) == (0, [], before)


def test_fully_deleted_files_are_removed(tmp_path: Path) -> None:
    """MT-43: a file whose bounds do not show it, a covered one, and their position deletes."""
    table = table_of(tmp_path, range(10), range(10, 20))
    table.delete("id2 = 3", mode="scan")
    table.delete("id2 = 13", mode="scan")
    table.delete_rows(pa.table({"id1": ["a"] * 20, "id2": list(range(20))}))
    assert live_tuples(table) == []
    result = table.maintenance.compact()
    assert (live_data_files(table), result.rewritten_data_files_count, result.added_data_files_count) == ([], 2, 0)
    assert live_delete_files(table) == []
    assert (result.removed_position_delete_files_count, result.removed_equality_delete_files_count) == (2, 1)
    assert result.deleted_row_count == 20


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path, *(range(start, 30, 5) for start in range(5)))
    table.delete_range(lower=("a", 0), upper=("a", 3))
    before = files_on_disk(table)
    result = table.maintenance.compact(dry_run=True)
    assert files_on_disk(table) == before
    assert (result.dry_run, result.snapshot_id) == (True, table.snapshot_id)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (5, 1)
    assert result.plan is not None
    assert "merge 5 files into 1" in str(result.plan)


def test_files_newer_than_the_handle_are_compacted(tmp_path: Path) -> None:
    table = table_of(tmp_path, range(10))
    other = another_handle(table)
    for start in range(10, 50, 10):
        other.append(rows("a", range(start, start + 10)))
    table.maintenance.compact()
    assert [data.record_count for data in live_data_files(table)] == [50]
    assert ids_of(table) == list(range(50))


def test_table_without_a_key_is_merged_in_file_order(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("v", pa.int64()), ("tags", pa.list_(pa.string()))]))
    for value in range(5):
        table.append(pa.table({"v": [value, -value], "tags": [["x", None], None]}))
    before = live_rows(table)
    table.maintenance.compact()
    assert [data.record_count for data in live_data_files(table)] == [10]
    assert live_rows(table) == before


def test_nested_renamed_added_and_dropped_columns(tmp_path: Path) -> None:
    """The new file is in the newest schema; field ids are kept at every level."""
    catalog = new_lake(tmp_path / "lake")
    nested = pa.struct([("x", pa.int32()), ("words", pa.list_(pa.string()))])
    schema = pa.schema(
        [
            pa.field("k", pa.int32(), nullable=False),
            pa.field("n", nested),
            pa.field("m", pa.map_(pa.string(), pa.int64())),
            pa.field("gone", pa.string()),
        ]
    )
    table = catalog.create_table("db.t", schema, key=["k"])
    row = {"n": {"x": 1, "words": ["a", None]}, "m": [("p", 1)], "gone": "g"}
    table.append(pa.Table.from_pylist([{"k": 3, **row}, {"k": 1, **row}], schema=schema))
    with table.update_schema() as update:
        update.rename_column("n", "nested")
        update.delete_column("gone")
        update.update_column("k", LongType())
    table.refresh()
    table.append(pa.Table.from_pylist([{"k": 2, "nested": None, "m": None}], schema=table.schema))
    before = sorted(table.scan().to_arrow().to_pylist(), key=lambda each: each["k"])
    table.maintenance.compact(min_input_files=2)
    assert [data.record_count for data in live_data_files(table)] == [3]
    assert table.scan().to_arrow().to_pylist() == before
    with table.update_schema() as update:
        update.rename_column("m", "pairs")
    table.refresh()
    assert [each["pairs"] for each in table.scan().to_arrow().to_pylist()] == [each["m"] for each in before]


def test_files_of_an_old_spec_keep_their_spec(tmp_path: Path) -> None:
    """MT-42"""
    table = keyed_table(tmp_path, partition_by=("id1",))
    for start in range(0, 25, 5):
        table.append(rows("a", range(start, start + 5)))
    with table.update_spec() as update:
        update.remove_field("id1")
    table.refresh()
    before = live_tuples(table)
    table.maintenance.compact()
    (data,) = live_data_files(table)
    assert (data.spec_id, data.partition) != (table.metadata.default_spec_id, ())
    assert data.partition == ("a",)
    assert live_tuples(table) == before


def test_unsorted_files_of_other_writers_are_sorted(tmp_path: Path) -> None:
    """RD-11, MT-43: a file without our marker is not trusted, regardless of its order; if memory is small, sorting
    spills to disk."""
    table = keyed_table(tmp_path, properties={"tableformat.write.memory-bytes": "65536"})
    shuffled = [(key * 7919) % 5000 for key in range(5000)]
    table.iceberg.append(rows("a", shuffled).sort_by([("payload", "ascending")]))
    table.refresh()
    table.append(rows("a", range(5000, 6000)))
    before = live_tuples(table)
    table.maintenance.compact(rewrite_all=True)
    (data,) = live_data_files(table)
    assert pq.read_table(data.file_path.removeprefix("file://"))["id2"].to_pylist() == list(range(6000))
    assert live_tuples(table) == before


def test_files_sorted_by_a_former_key_are_sorted_again(tmp_path: Path) -> None:
    """RD-11, MT-43: our marker names other columns, and range deletes are searched by the order in the marker."""
    table = keyed_table(tmp_path, properties={"write.parquet.row-group-limit": "10"})
    table.append(pa.concat_tables([rows(name, range(start, 40, 4)) for start, name in enumerate("dcba")]))
    table.set_key(["id2", "id1"])
    table.append(rows("e", range(40, 50)))
    before = sorted(live_tuples(table))
    table.maintenance.compact(rewrite_all=True)
    (data,) = live_data_files(table)
    assert pq.read_table(data.file_path.removeprefix("file://"))["id2"].to_pylist() == list(range(50))
    assert sorted(live_tuples(table)) == before
    table.delete_range(lower=(7,), upper=(45,))
    assert sorted(row[1] for row in live_tuples(table)) == [*range(7), *range(45, 50)]


def test_file_without_any_current_column(tmp_path: Path) -> None:
    """FM-21, MT-43: every column that it has was dropped; its rows are rows all the same."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64())]))
    for start in range(5):
        table.append(pa.table({"a": [start, start + 10]}))
    table.delete("a = 3", mode="scan")
    with table.iceberg.update_schema() as update:
        update.add_column("b", LongType())
    with table.iceberg.update_schema() as update:
        update.delete_column("a")
    table.refresh().maintenance.compact()
    assert [data.record_count for data in live_data_files(table)] == [9]
    assert live_tuples(table) == [(None,)] * 9


def test_group_runs_in_another_process(tmp_path: Path) -> None:
    """MT-43: task, context and result are plain data."""
    table = table_of(tmp_path, range(0, 20, 2), range(1, 20, 2))
    group = plan_compaction(table.view, CompactionOptions.of(table.view, rewrite_all=True)).groups[0]
    task = RewriteTask(
        tasks=group.tasks, spec_id=0, partition=(), sequence_number=2, target_file_size_bytes=512 * 1024 * 1024
    )
    task, context = pickle.loads(pickle.dumps((task, RewriteContext.of(table.view))))
    staged = pickle.loads(pickle.dumps(rewrite_group(task, context)))
    (data,) = staged.data_files
    assert (data.sequence_number, staged.row_count, staged.written_bytes) == (2, 20, data.file_size_bytes)
    assert pq.read_table(data.file_path.removeprefix("file://"))["id2"].to_pylist() == list(range(20))


def test_rows_of_v3_tables_keep_their_ids(tmp_path: Path) -> None:
    """MT-49: `_row_id` and `_last_updated_sequence_number` are what they were; the vectors leave with their files."""
    table = table_of(tmp_path, *(range(start, 40, 5) for start in range(5)), properties={"format-version": "3"})
    table.delete("id2 >= 10 and id2 < 15", mode="scan")
    assert {delete.kind for delete in live_delete_files(table)} == {DeleteKind.DELETION_VECTOR}
    columns = ["id2", "_row_id", "_last_updated_sequence_number"]
    before = sorted(table.scan(columns=columns).to_arrow().to_pylist(), key=lambda row: row["id2"])
    result = table.maintenance.compact()
    assert table.scan(columns=columns).to_arrow().to_pylist() == before
    assert (result.removed_deletion_vectors_count, live_delete_files(table)) == (5, [])


# -- beside writers ---------------------------------------------------------------------------------------------------


def test_concurrent_append_does_not_conflict(tmp_path: Path) -> None:
    """CP-3: no conflict."""
    table = five_files(tmp_path)
    other = another_handle(table)
    result = table.maintenance.compact(progress=Meanwhile(lambda: other.append(rows("a", [100]))))
    assert (result.group_count, result.failed_group_count) == (1, 0)
    assert ids_of(table) == [*range(50), 100]


@pytest.mark.parametrize("kind", ["range", "equality", "upsert"])
def test_concurrent_keyed_delete_applies_to_the_new_file(tmp_path: Path, kind: str) -> None:
    """CP-7: the new file carries the planned number, below the delete's."""
    table = five_files(tmp_path)
    other = another_handle(table)
    actions: dict[str, Callable[[], object]] = {
        "range": lambda: other.delete_range(lower=("a", 10), upper=("a", 20)),
        "equality": lambda: other.delete_rows(pa.table({"id1": ["a"] * 10, "id2": list(range(10, 20))})),
        "upsert": lambda: other.upsert(rows("a", range(10, 20), "new")),
    }
    result = table.maintenance.compact(progress=Meanwhile(actions[kind]))
    assert result.group_count == 1
    expected = [("a", key, "x") for key in range(50) if not 10 <= key < 20]
    if kind == "upsert":
        expected += [("a", key, "new") for key in range(10, 20)]
    assert live_tuples(table) == sorted(expected)
    table.maintenance.convert_deletes()
    assert live_tuples(table) == sorted(expected)


def test_concurrent_delete_and_conversion_do_not_restore_rows(tmp_path: Path) -> None:
    """CP-8, CP-9: apache/iceberg issue 10312: the delete has left when the compaction commits."""
    table = five_files(tmp_path)
    other = another_handle(table)
    meanwhile = Meanwhile(
        lambda: other.delete_range(lower=("a", 10), upper=("a", 13)), other.maintenance.convert_deletes
    )
    before = files_on_disk(table)
    result = table.maintenance.compact(progress=meanwhile)
    assert ids_of(table) == [*range(10), *range(13, 50)]
    assert (result.group_count, result.failed_group_count, result.deleted_row_count) == (1, 0, 3)
    new = {path for path in files_on_disk(table) - before if path.endswith(".parquet") and "deletes" not in path}
    assert new == {data.file_path for data in live_data_files(table)}, "files of the attempt that failed are gone"


def test_compaction_is_replanned_after_concurrent_conversion(tmp_path: Path) -> None:
    """CP-8: its rows are not in the new file, but new position deletes refer to the old files."""
    table = five_files(tmp_path)
    table.delete_range(lower=("a", 10), upper=("a", 13))
    other = another_handle(table)
    table.maintenance.compact(progress=Meanwhile(other.maintenance.convert_deletes))
    assert ids_of(table) == [*range(10), *range(13, 50)]
    assert [data.record_count for data in live_data_files(table)] == [47]


def test_compaction_is_replanned_after_concurrent_position_delete(tmp_path: Path) -> None:
    """CP-8: nothing would carry the positions over."""
    table = five_files(tmp_path)
    other = another_handle(table)
    result = table.maintenance.compact(progress=Meanwhile(lambda: other.delete("id2 = 17", mode="scan")))
    assert ids_of(table) == [key for key in range(50) if key != 17]
    assert (result.group_count, len(live_data_files(table)), live_delete_files(table)) == (1, 1, [])


def test_concurrent_compactions(tmp_path: Path) -> None:
    """CP-4: the input files of the second one are gone, and then it has nothing to do."""
    table = five_files(tmp_path)
    other = another_handle(table)
    result = table.maintenance.compact(progress=Meanwhile(other.maintenance.compact))
    assert (result.group_count, result.failed_group_count) == (0, 0)
    assert ids_of(table) == list(range(50))
    assert [data.record_count for data in live_data_files(table)] == [50]


def test_conversion_planned_before_a_compaction_commits(tmp_path: Path) -> None:
    """CP-11: the new file has an old number, so a delete that is newer still needs it searched."""
    table = five_files(tmp_path)
    other = another_handle(table)
    other.delete_range(lower=("a", 10), upper=("a", 13))
    other.maintenance.convert_deletes(progress=Meanwhile(table.maintenance.compact))
    assert ids_of(other.refresh()) == [*range(10), *range(13, 50)]


def test_corrupt_input_fails_the_job_and_changes_nothing(tmp_path: Path) -> None:
    """DA-8: never a file with fewer rows."""
    table = five_files(tmp_path)
    victim = live_data_files(table)[2].file_path.removeprefix("file://")
    content = Path(victim).read_bytes()
    Path(victim).write_bytes(content[:200] + b"\0" * (len(content) - 208) + content[-8:])
    before = files_on_disk(table)
    fresh = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    with pytest.raises(CorruptFileError, match=os.path.basename(victim)):
        fresh.maintenance.compact()
    assert files_on_disk(fresh) == before


def test_concurrent_upgrade_is_planned_again(tmp_path: Path) -> None:
    """MT-49: files without row ids are not committed to a v3 table."""
    table = five_files(tmp_path)
    other = another_handle(table)
    table.maintenance.compact(progress=Meanwhile(lambda: other.set_properties(**{"format-version": "3"})))
    (data,) = live_data_files(table)
    names = pq.read_schema(data.file_path.removeprefix("file://")).names
    assert names == ["id1", "id2", "payload", "_row_id", "_last_updated_sequence_number"]
    assert ids_of(table) == list(range(50))


@pytest.mark.parametrize("options", [{"executor": "cluster"}, {"max_commits": 0}])
def test_invalid_arguments_are_rejected(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        five_files(tmp_path).maintenance.compact(**options)


def test_output_files_have_disjoint_keys_and_even_sizes(tmp_path: Path) -> None:
    """MT-44, MT-45"""
    table = table_of(tmp_path, *(range(start, 6000, 6) for start in range(6)))
    before = live_tuples(table)
    size = sum(data.file_size_bytes for data in live_data_files(table))
    table.maintenance.compact(target_file_size_bytes=size // 6)
    ranges = sorted(
        (int.from_bytes(data.lower_bounds[2], "little"), int.from_bytes(data.upper_bounds[2], "little"))
        for data in live_data_files(table)
        if data.lower_bounds and data.upper_bounds
    )
    assert [ranges[0][0], ranges[-1][1]] == [0, 5999]
    assert len(ranges) > 2
    assert all(upper + 1 == lower for (_, upper), (lower, _) in itertools.pairwise(ranges))
    counts = [data.record_count for data in live_data_files(table)]
    assert min(counts) > max(counts) / 2, "no small file is left at the end"
    assert live_tuples(table) == before
