"""Deletes that match no row are removed from the head, each with a proof; the other deletes stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commit_tables import position_delete, vector
from maintenance_tables import commit_deletes, keyed_table, planned, rows, unnamed_position_delete
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.transaction import commit_change
from tableformat.deletes.codecs import packed_spans
from tableformat.errors import CorruptFileError
from tableformat.maintenance.delete_files.dead_deletes import dead_deletes
from tableformat.metadata.content_file import DeleteFile, FileContent
from tableformat.scan.context import merge_context
from tableformat.testing.table_files import live_data_files, live_delete_files
from tableformat.testing.table_rows import live_tuples


def proofs(table: tf.Table) -> list[str]:
    result = table.maintenance.drop_dead_deletes(dry_run=True)
    return [proof for _, proof in result.proofs]


def test_range_delete_that_covers_no_row_is_removed(tmp_path: Path) -> None:
    """MT-10, RD-10: the keys lie outside the only data file."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(5)))
    table.delete_prefix({"id1": "b"})
    before = live_tuples(table)
    result = table.maintenance.drop_dead_deletes()
    assert result.removed_range_delete_files_count == 1
    assert "no older data file in its scope has keys in its spans" in result.proofs[0][1]
    assert (live_delete_files(table), live_tuples(table)) == ([], before)
    assert table.maintenance.drop_dead_deletes().snapshot_id == result.snapshot_id, "nothing left to do: no snapshot"


def test_range_delete_that_covers_rows_is_kept(tmp_path: Path) -> None:
    """MT-10"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(5)))
    table.delete_prefix({"id1": "a", "id2": 3})
    assert proofs(table) == []
    assert live_tuples(table) == [("a", number, "x") for number in (0, 1, 2, 4)]


def test_range_delete_file_with_one_needed_span_is_kept(tmp_path: Path) -> None:
    """MT-10: one of two spans in a file matches no row."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(5)))
    table.delete_prefix(pa.table({"id1": ["a", "b"], "id2": [3, 3]}))
    assert [delete.record_count for delete in live_delete_files(table)] == [2]
    table.maintenance.drop_dead_deletes()
    assert live_tuples(table) == [("a", number, "x") for number in (0, 1, 2, 4)]


def test_deletes_older_than_all_data_are_removed(tmp_path: Path) -> None:
    """MT-10, DA-2, RD-2: strictly older data only."""
    table = keyed_table(tmp_path)
    table.delete_prefix({"id1": "a"})
    table.upsert(rows("a", [1, 2]))
    assert proofs(table) == ["no live data file in its scope is older than it"] * 2
    table.maintenance.drop_dead_deletes()
    assert live_delete_files(table) == []
    assert live_tuples(table) == [("a", 1, "x"), ("a", 2, "x")]


def test_older_snapshot_keeps_the_removed_delete(tmp_path: Path) -> None:
    """MT-10: manifests of older snapshots are their own."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(3)))
    table.delete_prefix({"id1": "a", "id2": 1})
    deleted = table.snapshot_id
    table.delete(where="id1 = 'a'", mode="scan")
    table.append(rows("a", [1]))
    table.maintenance.drop_dead_deletes()
    assert live_delete_files(table) == []
    assert live_tuples(table) == [("a", 1, "x")]
    assert live_tuples(table, snapshot_id=deleted) == [("a", 0, "x"), ("a", 2, "x")]


def test_range_delete_covered_by_newer_ones_is_removed(tmp_path: Path) -> None:
    """MT-10, RD-9: two newer spans cover it together."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(9)))
    table.delete_range(lower=("a", 2), upper=("a", 6))
    table.delete_range(lower=("a", 1), upper=("a", 4))
    table.delete_range(lower=("a", 4), upper=("a", 7))
    before = live_tuples(table)
    result = table.maintenance.drop_dead_deletes()
    assert [proof for _, proof in result.proofs] == ["newer range deletes cover all of its spans"]
    assert live_tuples(table) == before
    assert sorted(delete.sequence_number or 0 for delete in live_delete_files(table)) == [3, 4]


def test_equality_delete_without_matching_keys_is_removed(tmp_path: Path) -> None:
    """MT-10"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(5)))
    table.delete_rows(pa.table({"id1": ["a"], "id2": pa.array([77], pa.int64())}))
    table.delete_rows(pa.table({"id1": ["a"], "id2": pa.array([3], pa.int64())}))
    assert proofs(table) == ["no older data file in its scope has keys within its bounds"]


def test_data_of_other_partitions_does_not_keep_a_partition_delete(tmp_path: Path) -> None:
    """MT-10, DA-3: old data elsewhere does not keep a delete alive."""
    table = keyed_table(tmp_path, partition_by=("id1",))
    table.append(rows("old", [1]))
    table.append(rows("a", [1]))
    target = next(file for file in live_data_files(table) if file.partition == ("a",))
    delete = DeleteFile(
        content=FileContent.EQUALITY_DELETES,
        file_path=f"{table.location}/data/left.parquet",
        file_format="PARQUET",
        spec_id=target.spec_id,
        partition=("b",),
        record_count=1,
        file_size_bytes=9,
        equality_ids=(1,),
    )
    commit_deletes(table, delete)
    assert proofs(table) == ["no live data file in its scope is older than it"]


@pytest.mark.parametrize(
    ("partition", "proofs"),
    [
        ("a", []),
        ("b", ["no older data file in its scope has keys in its spans, apart from newer spans"]),
        ("c", ["no live data file in its scope is older than it"]),
    ],
)
def test_partition_range_delete_is_kept_only_for_its_partition(
    tmp_path: Path, partition: str, proofs: list[str]
) -> None:
    """MT-10, RD-3: the row that it deletes is alive in partition a."""
    table = keyed_table(tmp_path, partition_by=("id1",))
    table.append(rows("a", [1]))
    table.append(rows("b", [1]))
    table.delete_prefix({"id1": "a", "id2": 1})
    (everywhere,) = live_delete_files(table)
    data = live_data_files(table)
    delete = replace(everywhere, spec_id=data[0].spec_id, partition=(partition,))
    found = dead_deletes(table.view, data, [delete], merge_context(table.view))
    assert [dead.proof for dead in found] == proofs


def test_position_deletes_of_removed_data_files_are_removed(tmp_path: Path) -> None:
    """MT-10, DA-1: the data file that they name is gone; a delete file that names several is removed with the last of
    them."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(3)))
    table.append(rows("b", range(3)))
    first, second = sorted(live_data_files(table), key=lambda file: file.sequence_number or 0)
    one = position_delete(table.iceberg, "one.parquet", first, [0])
    both = unnamed_position_delete(table, [(first, 1), (second, 1)])
    commit_deletes(table, one, both)
    assert proofs(table) == []
    commit_change(
        table.iceberg,
        TableChange(
            operation=Operation.DELETE, kind=ChangeKind.SCAN_BASED, **planned(table), removed_data_files=(first,)
        ),
    )
    table.refresh()
    assert proofs(table) == [f"its data file, {first.file_path}, was removed from the table"]
    before = live_tuples(table)
    table.maintenance.drop_dead_deletes()
    assert live_tuples(table) == before == [("b", 0, "x"), ("b", 2, "x")]
    table.append(rows("c", [1]))
    commit_change(
        table.iceberg,
        TableChange(
            operation=Operation.DELETE, kind=ChangeKind.SCAN_BASED, **planned(table), removed_data_files=(second,)
        ),
    )
    table.refresh()
    assert proofs(table) == ["no data file of its partition is within its bounds and as old"]


def test_position_deletes_of_unknown_format_are_kept(tmp_path: Path) -> None:
    """MT-10: the data files that their rows name are unknown."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(5)))
    (data,) = live_data_files(table)
    delete = unnamed_position_delete(table, [(data, 1)])
    (dead, kept) = (replace(delete, sequence_number=1, file_format=name) for name in ("PARQUET", "ORC"))
    gone = [replace(data, file_path=f"{data.file_path}-2", sequence_number=1)]
    context = merge_context(table.view)
    assert [each.delete for each in dead_deletes(table.view, gone, [dead], context)] == [dead]
    assert dead_deletes(table.view, gone, [kept], context) == ()


def test_position_deletes_replaced_by_a_vector_are_removed(tmp_path: Path) -> None:
    """MT-10, DA-7: position deletes under a vector are dead; so is the vector of a file that left."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(3)))
    target = replace(live_data_files(table)[0], sequence_number=1)
    gone = replace(target, file_path=f"{table.location}/data/gone.parquet")
    under = replace(position_delete(table.iceberg, "under.parquet", target, [0]), sequence_number=2)
    alive = replace(vector(table.iceberg, "v.puffin", target), sequence_number=3)
    dead = replace(vector(table.iceberg, "v.puffin", gone), sequence_number=3, content_offset=99)
    context = merge_context(table.view)
    found = {each.delete: each.proof for each in dead_deletes(table.view, [target], [under, alive, dead], context)}
    assert set(found) == {under, dead}
    assert "replaces all position deletes" in found[under]
    assert "removed from the table" in found[dead]


def test_unreadable_delete_file_stops_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-8"""
    monkeypatch.setattr(packed_spans, "MAX_SPANS", 0)
    table = keyed_table(tmp_path)
    table.append(rows("a", range(5)))
    table.delete_prefix(pa.table({"id1": list("bcdef")}))  # more than an entry carries (RD-13)
    Path(live_delete_files(table)[0].file_path.removeprefix("file://")).write_bytes(b"PAR1")
    fresh = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    with pytest.raises(CorruptFileError):
        fresh.maintenance.drop_dead_deletes()


def test_conversion_removes_dead_deletes_in_the_same_commit(tmp_path: Path) -> None:
    """MT-10, CP-11: leftovers of every kind leave with the converted deletes, and the report has a proof for each."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(3)))
    table.append(rows("b", range(3)))
    first = next(file for file in live_data_files(table) if file.sequence_number == 1)
    gone = replace(first, file_path=f"{table.location}/data/gone.parquet")
    commit_deletes(
        table,
        position_delete(table.iceberg, "left.parquet", gone, [0]),
        unnamed_position_delete(table, [(first, 1), (gone, 1)]),
    )
    table.delete_prefix({"id1": "a"})
    table.delete_prefix({"id1": "b", "id2": 1})
    table.delete_prefix({"id1": "z"})
    planned_result = table.maintenance.convert_deletes(dry_run=True)
    snapshots = len(table.refresh().metadata.snapshots)
    result = table.maintenance.convert_deletes()
    assert len(table.refresh().metadata.snapshots) == snapshots + 1
    assert live_tuples(table) == [("b", 0, "x"), ("b", 2, "x")]
    assert [delete.referenced_data_file for delete in live_delete_files(table)] == [live_data_files(table)[0].file_path]
    assert dict(result.proofs) == dict(planned_result.proofs)
    reasons = sorted(proof for _, proof in result.proofs)
    assert [reason.split(",")[0] for reason in reasons] == [
        *["all older data files within its bounds were searched for its rows"] * 3,
        "its data file",
        "its data files were removed from the table",
    ]
    again = table.maintenance.convert_deletes()
    assert (again.snapshot_id, again.proofs) == (result.snapshot_id, ())


def test_rollback_during_dead_delete_removal_restores_no_row(tmp_path: Path) -> None:
    """CP-11: the data file that a position delete names is live again by the time the conversion commits."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(3)))
    (data,) = live_data_files(table)
    commit_deletes(table, position_delete(table.iceberg, "p.parquet", data, [0]))
    with_row_deleted = table.snapshot_id
    commit_change(
        table.iceberg,
        TableChange(
            operation=Operation.DELETE, kind=ChangeKind.SCAN_BASED, **planned(table), removed_data_files=(data,)
        ),
    )
    table.refresh().append(rows("b", [1]))
    table.delete_prefix({"id1": "b", "id2": 1})
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    catalog, real, calls = table.iceberg.catalog, table.iceberg.catalog.commit_table, []

    def after_rollback(*arguments: Any) -> Any:
        if not calls:
            calls.append(other.rollback(snapshot_id=with_row_deleted))
        return real(*arguments)

    catalog.commit_table = after_rollback
    table.maintenance.convert_deletes()
    assert live_tuples(table.refresh()) == [("a", 1, "x"), ("a", 2, "x")]
