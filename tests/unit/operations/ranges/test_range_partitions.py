"""Range partitions of tables: rejected rows through every entry point, alterations, drops, rollback."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.errors import (
    InvalidArgumentError,
    UncoveredRowsError,
    UnsupportedFeatureError,
)
from tableformat.operations.history.references import commit_updates
from tableformat.properties import RANGE_PARTITIONS
from tableformat.testing.table_files import live_data_files
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([("n", pa.int64()), ("id", pa.int64()), ("v", pa.string())])


def made(catalog: tf.Catalog, name: str = "db.t", **given: Any) -> tf.Table:
    options = {"on": ["n"], "bounds": [(0, 100)], **given}
    return catalog.create_table(name, SCHEMA, key=["n", "id"], range_partitions=tf.RangePartitions(**options))


def test_without_bounds_every_row_is_accepted(catalog: tf.Catalog) -> None:
    """RP-2"""
    table = made(catalog, bounds=None, splits=[10])
    table.append(rows(-(2**63), 9, 10, 2**63 - 1))
    assert table.range_partitions.list()["partition"].to_pylist() == ["(-inf, 10)", "[10, inf)"]
    table.range_partitions.drop(None, 10)
    assert live_values(table, "n") == [10, 2**63 - 1]
    with pytest.raises(UncoveredRowsError):
        table.append(rows(9))


@pytest.mark.parametrize("door", ["append", "replace", "upsert", "apply_changes", "new_write", "transaction"])
def test_stale_handle_accepts_rows_of_an_added_range(catalog: tf.Catalog, door: str) -> None:
    """RP-5"""
    table = made(catalog)
    catalog.load_table("db.t").range_partitions.add(200, 300)
    DOORS[door](table, rows(250))
    assert live_values(table, "n") == [250]


def rows(*numbers: int, v: str = "x") -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "id": [1] * len(numbers), "v": [v] * len(numbers)})


def write_elsewhere(table: tf.Table, given: pa.Table, kind: str = "append", **options: Any) -> Any:
    """Through another process."""
    write = pickle.loads(pickle.dumps(table.new_write(kind=kind)))
    staged = pickle.loads(pickle.dumps(write.write(given, **options)))
    table.commit(write, [staged])
    return staged


def in_transaction(table: tf.Table, given: pa.Table, **options: Any) -> Any:
    with table.transaction() as transaction:
        transaction.append(given, **options)
    return transaction.result


def as_changes(given: pa.Table) -> pa.Table:
    return given.append_column("_op", [["I"] * given.num_rows]).append_column("_ts", [list(range(given.num_rows))])


DOORS: dict[str, Callable[..., Any]] = {
    "append": lambda table, given, **options: table.append(given, **options),
    "append, duplicates ignored": lambda table, given, **options: table.append(given, on_duplicate="ignore", **options),
    "replace": lambda table, given, **options: table.replace(given, **options),
    "upsert": lambda table, given, **options: table.upsert(given, **options),
    "apply_changes": lambda table, given, **options: table.apply_changes(as_changes(given), **options),
    "overwrite": lambda table, given, **options: table.overwrite(given, where="n = 5", allow_outside=True, **options),
    "replace_interval": lambda table, given, **options: table.replace_interval(
        given, on="n", lower=0, upper=1000, **options
    ),
    "new_write": write_elsewhere,
    "new_write, replacing": lambda table, given, **options: write_elsewhere(table, given, "replace", **options),
    "transaction": in_transaction,
}


@pytest.mark.parametrize("door", DOORS)
def test_every_write_operation_rejects_uncovered_rows(door: str, catalog: tf.Catalog) -> None:
    """RP-5: nothing is committed, or the other rows are committed and the rejected ones are returned."""
    table = made(catalog)
    table.append(rows(5, v="old"))
    before = table.iceberg.metadata_location
    with pytest.raises(UncoveredRowsError) as caught:
        DOORS[door](table, rows(5, 100, 7))
    report = caught.value.refused.to_pylist()
    assert [(each["row_index"], each["column"], each["row"]["n"]) for each in report] == [(1, "n", 100)]
    assert report[0]["reason"] == "no range partition covers n = 100; the nearest is [0, 100)"
    assert table.refresh().iceberg.metadata_location == before
    refused = DOORS[door](table, rows(5, 100, 7), on_refused="divert").refused
    assert refused["n"].to_pylist() == [100]
    assert 100 not in live_values(table.refresh(), "n")
    assert 7 in live_values(table, "n")


def test_earlier_started_write_does_not_use_a_later_range(catalog: tf.Catalog) -> None:
    """RP-5: it does not see a range that another process added in the meantime."""
    table = made(catalog)
    write = table.new_write()
    with table.transaction() as transaction:
        catalog.load_table("db.t").range_partitions.add(100, 200)
        with pytest.raises(UncoveredRowsError):
            transaction.append(rows(100))
    with pytest.raises(UncoveredRowsError):
        write.write(rows(100))
    in_transaction(table, rows(100))
    write_elsewhere(table, rows(101))
    with pytest.raises(UncoveredRowsError) as caught:
        table.append(rows(999))
    assert "begun" not in str(caught.value)
    assert "transaction" not in str(caught.value)
    assert live_values(table.refresh(), "n") == [100, 101]


def test_rejected_row_rejects_its_whole_prefix(catalog: tf.Catalog) -> None:
    """RP-5, CP-24: the old rows of the prefix stay."""
    schema = pa.schema([("message", pa.string()), ("n", pa.int64())])
    bounds = tf.RangePartitions(on=["n"], bounds=[(0, 10)])
    table = catalog.create_table("db.m", schema, key=["message", "n"], range_partitions=bounds)
    table.append(pa.table({"message": ["a", "b"], "n": [1, 1]}))
    new = pa.table({"message": ["a", "b", "a"], "n": [2, 2, 10]})
    result = table.replace(new, prefix=["message"], on_refused="divert")
    assert result.refused.select(["message", "n"]).to_pylist() == [{"message": "a", "n": 2}, {"message": "a", "n": 10}]
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == [{"message": "a", "n": 1}, {"message": "b", "n": 2}]


def test_table_without_ranges_rejects_every_row(catalog: tf.Catalog) -> None:
    """RP-1"""
    with pytest.raises(UncoveredRowsError):
        made(catalog, bounds=[]).append(rows(1))


def test_deletes_are_never_refused(catalog: tf.Catalog) -> None:
    """RP-5"""
    table = made(catalog)
    table.append(rows(1, 2))
    table.delete_prefix({"n": 1_000})
    table.delete_rows(pa.table({"n": pa.array([2], pa.int64())}))
    assert live_values(table, "n") == [1]


def test_unknown_version_blocks_writers_but_not_readers(catalog: tf.Catalog) -> None:
    """RP-1"""
    table = made(catalog)
    table.append(rows(1))
    set_by_another(table, '{"version":2,"magic":true}')
    assert live_values(table, "n") == [1]
    for door in DOORS.values():
        with pytest.raises(UnsupportedFeatureError, match="version 2"):
            door(table, rows(2))
    with pytest.raises(UnsupportedFeatureError, match="version 2"):
        table.range_partitions.list()
    assert live_values(table.refresh(), "n") == [1]


def set_by_another(table: tf.Table, text: str) -> None:
    from pyiceberg.table.update import SetPropertiesUpdate

    commit_updates(table.iceberg, (), (SetPropertiesUpdate(updates={RANGE_PARTITIONS: text}),))


def test_range_partitions_property_cannot_be_set_directly(catalog: tf.Catalog) -> None:
    """RP-1"""
    table = made(catalog)
    with pytest.raises(InvalidArgumentError, match=r"range_partitions\.alter"):
        table.set_properties({RANGE_PARTITIONS: "{}"})
    with pytest.raises(InvalidArgumentError, match="create_table"):
        catalog.create_table("db.u", SCHEMA, properties={RANGE_PARTITIONS: "{}"})
    table.remove_properties(RANGE_PARTITIONS)
    assert table.append(rows(1_000)).added_row_count == 1


def test_files_never_cross_a_range_bound(catalog: tf.Catalog) -> None:
    """RP-7: also if the rows are in many batches, or if the step does not correspond to a transform."""
    table = made(catalog, bounds=[(0, 1_000)], step=300, splits=[50], origin=100)
    batches = [rows(*range(start, 1_000, 97)).to_batches()[0] for start in range(97)]
    table.append(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    listed = table.range_partitions.list().to_pylist()
    assert [each["partition"] for each in listed] == ["[0, 50)", "[50, 100)", "[100, 400)", "[400, 700)", "[700, 1000)"]
    assert [each["record_count"] for each in listed] == [50, 50, 300, 300, 300]
    assert {each["straddling_file_count"] for each in listed} == {0}


def test_drop_removes_whole_files_and_covers_straddling_ones(catalog: tf.Catalog) -> None:
    """RP-12: the rows of a straddling file that stay do stay."""
    table = made(catalog)
    table.append(rows(10, 60))
    table.range_partitions.split(50)
    table.append(rows(20, 70, 80))
    with pytest.raises(InvalidArgumentError, match="1 data files have rows both inside and outside"):
        table.range_partitions.drop(50, 100, metadata_only=True)
    tried = table.range_partitions.drop(50, 100, dry_run=True)
    assert (tried.removed_data_files_count, tried.removed_row_count, tried.straddling_data_files_count) == (1, 2, 1)
    assert live_values(table, "n") == [10, 20, 60, 70, 80]
    result = table.range_partitions.drop(50, 100)
    assert (result.dropped, result.added_delete_files_count) == (("[50, 100)",), 1)
    assert (result.removed_row_count, result.removed_bytes) == (tried.removed_row_count, tried.removed_bytes)
    assert live_values(table, "n") == [10, 20]
    table.range_partitions.add(50, 100)
    table.append(rows(60, 99))
    assert live_values(table, "n") == [10, 20, 60, 99]


def test_drop_at_file_bounds_is_metadata_only(catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """RP-12"""
    table = made(catalog, step=10)
    table.append(rows(*range(100)))
    removed = [data.file_path for data in live_data_files(table) if data.partition in ((0,), (10,))]
    assert len(removed) == 2
    for path in removed:
        Path(path.removeprefix("file://")).unlink()
    result = table.range_partitions.drop(0, 20)
    assert (result.removed_data_files_count, result.added_delete_files_count) == (2, 0)
    assert live_values(table, "n") == list(range(20, 100))


def test_add_split_and_merge_create_no_snapshot(catalog: tf.Catalog) -> None:
    """RP-8"""
    table = made(catalog)
    table.append(rows(1))
    loaded = table.snapshot_id
    changes = table.range_partitions
    results = [changes.add(200, 300), changes.split(250), changes.merge(200, 300), changes.add(300, None)]
    assert {each.snapshot_id for each in results} == {None}
    assert table.refresh().snapshot_id == loaded
    assert table.range_partitions.list()["partition"].to_pylist() == ["[0, 100)", "[200, 300)", "[300, inf)"]


def beside_the_next_commit(monkeypatch: pytest.MonkeyPatch, table: tf.Table, act: Callable[[], object]) -> None:
    """Another process does it in the moment of that commit: its writer has looked, the catalog has not."""
    catalog_type = type(table.iceberg.catalog)
    commit = catalog_type.commit_table

    def commit_after(*arguments: Any) -> Any:
        monkeypatch.setattr(catalog_type, "commit_table", commit)
        act()
        return commit(*arguments)

    monkeypatch.setattr(catalog_type, "commit_table", commit_after)


def test_range_added_concurrently_with_a_drop_is_kept(catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """RP-8: adding a range creates no snapshot, so the head of the branch does not show it."""
    table = made(catalog, step=10)
    table.append(rows(1, 55))
    other = catalog.load_table("db.t")
    beside_the_next_commit(monkeypatch, table, lambda: other.range_partitions.add(200, 300))
    table.range_partitions.drop(50, 60)
    table.refresh().append(rows(250))
    assert live_values(table, "n") == [1, 250]


def test_branch_append_concurrent_with_a_drop(catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """RP-6, RP-8: what exists is the table's, and the drop does not move the branch."""
    table = made(catalog, step=10)
    table.append(rows(1, 55))
    table.create_branch("b")
    branch = catalog.load_table("db.t", branch="b")
    beside_the_next_commit(monkeypatch, table, lambda: table.range_partitions.drop(50, 60))
    with pytest.raises(UncoveredRowsError):
        branch.append(rows(2, 56))
    assert live_values(table.refresh(), "n", branch="b") == [1, 55]


def test_append_concurrent_with_foreign_property_change(catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """RP-6, RP-8: another program narrows what exists, without a snapshot."""
    table = made(catalog)
    table.append(rows(1))
    iceberg = catalog.load_table("db.t").iceberg
    narrower = json.loads(iceberg.metadata.properties[RANGE_PARTITIONS])
    narrower["bounds"] = [[[0], [50]]]

    def narrow() -> None:
        with iceberg.transaction() as transaction:
            transaction.set_properties({RANGE_PARTITIONS: json.dumps(narrower)})

    beside_the_next_commit(monkeypatch, table, narrow)
    with pytest.raises(UncoveredRowsError):
        table.append(rows(2, 56))
    assert live_values(table.refresh(), "n") == [1]


def test_alter_commits_several_changes_together(catalog: tf.Catalog) -> None:
    """RP-8: validated together; if one change is invalid, all are rejected and the table stays unchanged."""
    table = made(catalog, step=10)
    table.append(rows(*range(0, 100, 5)))
    before = table.iceberg.metadata_location
    for impossible in (
        {"drop": [(0, 10)], "add": [(90, 110)]},
        {"drop": [(0, 15)]},
        {"drop": [(0, 10), (5, 20)]},
        {"drop": [(500, 510)]},
        {"split": [500]},
        {"split": [10]},
        {"merge": [(0, 20)]},
        {"add": [(200, None)]},
        {"add": [(200, 200)]},
    ):
        with pytest.raises(InvalidArgumentError):
            table.range_partitions.alter(**impossible)
    assert table.refresh().iceberg.metadata_location == before
    result = table.range_partitions.alter(drop=[(0, 10), (50, 60)], add=[(100, 120)], split=[115])
    assert result.dropped == ("[0, 10)", "[50, 60)")
    assert result.added == ("[100, 120)",)
    assert table.range_partitions.list()["partition"].to_pylist()[-3:] == ["[100, 110)", "[110, 115)", "[115, 120)"]
    assert live_values(table, "n") == [*range(10, 50, 5), *range(60, 100, 5)]


def test_rollback_restores_the_ranges(catalog: tf.Catalog) -> None:
    """RP-15: ranges that were added on demand are removed with their rows."""
    table = made(catalog, bounds=[(0, 10)], step=10, on_demand=True)
    table.append(rows(1))
    first, wide = table.snapshot_id, table.properties[RANGE_PARTITIONS]
    table.append(rows(95))
    table.range_partitions.drop(0, 10)
    assert table.range_partitions.list()["partition"].to_pylist() == ["[90, 100)"]
    table.rollback(snapshot_id=first)
    assert table.properties[RANGE_PARTITIONS] == wide
    table.append(rows(2))
    assert live_values(table, "n") == [1, 2]
    assert table.range_partitions.list()["partition"].to_pylist() == ["[0, 10)"]


def test_on_demand_steps_are_added_with_the_rows(catalog: tf.Catalog) -> None:
    """RP-9"""
    table = made(
        catalog, bounds=[(0, 5)], step=10, on_demand=True, on_demand_limits=(-100, 1_000), max_new_per_commit=3
    )
    result = table.append(rows(-1, 4, 7, 23))
    assert result.attempts == 1
    assert table.range_partitions.list()["partition"].to_pylist() == ["[-10, 0)", "[0, 5)", "[5, 10)", "[20, 30)"]
    with pytest.raises(UncoveredRowsError):
        table.append(rows(9_999))
    with pytest.raises(InvalidArgumentError, match="4 new range partitions"):
        table.append(rows(100, 110, 120, 130))
    write_elsewhere(table, rows(500))
    assert table.range_partitions.list()["partition"].to_pylist()[-1] == "[500, 510)"
    assert live_values(table, "n") == [-1, 4, 7, 23, 500]


def test_default_partition_accepts_all_other_rows(catalog: tf.Catalog) -> None:
    """RP-10"""
    table = made(catalog, default=True)
    table.append(rows(5, 200, 300))
    table.range_partitions.add(250, 400)
    listed = table.range_partitions.list().to_pylist()
    assert [(each["partition"], each["state"]) for each in listed] == [
        ("[0, 100)", "live"),
        ("[250, 400)", "live"),
        ("default", "default"),
    ]
    assert listed[1]["straddling_file_count"] == 1
    assert live_values(table, "n") == [5, 200, 300]


def test_uncovered_rows_of_foreign_writers_are_read_and_listed(catalog: tf.Catalog) -> None:
    """RP-10"""
    table = made(catalog)
    table.append(rows(5))
    schema = table.iceberg.schema().as_arrow()
    table.iceberg.append(rows(700).cast(schema))
    assert live_values(table.refresh(), "n") == [5, 700]
    assert table.scan(where="n BETWEEN 200 AND 300").count() == 0
    last = table.range_partitions.list().to_pylist()[-1]
    assert (last["partition"], last["state"], last["record_count"]) == ("uncovered", "uncovered", 1)


def test_staged_rows_of_a_dropped_range_are_rejected(catalog: tf.Catalog) -> None:
    """RP-6: staged rows that are still covered are committed."""
    table = made(catalog, step=10)
    write = table.new_write()
    gone, kept = write.write(rows(55)), write.write(rows(5))
    table.range_partitions.drop(50, 60)
    with pytest.raises(UncoveredRowsError):
        table.commit(write, [gone])
    table.commit(write, [kept])
    assert live_values(table, "n") == [5]


def test_unchecked_files_are_checked_by_their_bounds(catalog: tf.Catalog) -> None:
    """RP-6"""
    other, table = made(catalog, "db.wide", bounds=[(None, None)]), made(catalog)
    (data,) = other.new_write().write(rows(500)).data_files
    from tableformat.operations.options import CommitOptions
    from tableformat.operations.staging.draft import Draft
    from tableformat.write.staged import StagedFiles

    draft = Draft(table.iceberg, "main")
    draft.begin_verb()
    draft.adopt_files(StagedFiles(data_files=(data,), row_count=1))
    with pytest.raises(UncoveredRowsError):
        draft.commit(CommitOptions(), started=0.0)


def test_drop_on_publish_target_is_rejected(catalog: tf.Catalog) -> None:
    """RP-8, MT-30"""
    table = made(catalog, step=10)
    table.append(rows(1))
    table.create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
    with pytest.raises(InvalidArgumentError, match="Make the change on 'ingest'"):
        table.range_partitions.drop(50, 60)
    with pytest.raises(InvalidArgumentError, match="Make the change on 'ingest'"):
        table.range_partitions.drop(0, 10)
    branch = catalog.load_table("db.t", branch="ingest")
    assert branch.range_partitions.drop(0, 10).removed_row_count == 1


def test_partitions_are_listed_with_their_files(catalog: tf.Catalog) -> None:
    """RP-14"""
    table = made(catalog, step=50)
    table.append(rows(1, 2, 60))
    table.delete_prefix({"n": 1})
    listed = table.range_partitions.list().to_pylist()
    assert [(each["lower"], each["upper"], each["state"], each["file_count"]) for each in listed] == [
        (0, 50, "live", 1),
        (50, 100, "live", 1),
    ]
    assert [each["range_delete_file_count"] for each in listed] == [1, 0]
    assert [each["is_record_count_exact"] for each in listed] == [False, True]
    assert listed[0]["total_bytes"] > 0
    assert listed[0]["last_updated_at"] is not None


def test_list_without_range_partitions_raises_error(catalog: tf.Catalog) -> None:
    table = catalog.create_table("db.plain", SCHEMA)
    with pytest.raises(InvalidArgumentError, match="it accepts rows with any key"):
        table.range_partitions.list()


def test_step_adds_a_partition_field(catalog: tf.Catalog) -> None:
    """RP-7: in addition to the user's partition fields."""
    schema = pa.schema([pa.field("ts", pa.timestamp("us"), nullable=False), ("id", pa.int64())])
    days = tf.RangePartitions(on=["ts"], bounds=[(datetime(2024, 1, 1), datetime(2024, 2, 1))], step="1 day")
    table = catalog.create_table("db.d", schema, key=["id"], partition_by=["bucket(4, id)"], range_partitions=days)
    assert [field.name for field in table.metadata.spec().fields] == ["id_bucket", "ts_day"]
