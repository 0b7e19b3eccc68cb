"""Replaced intervals and partitions: covered files are removed, one range delete covers the rest; planned again for
each attempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.errors import CommitConflictError, InvalidArgumentError, RowsRefusedError, UncoveredRowsError
from tableformat.metadata.content_file import DataFile
from tableformat.operations.staging.replaced_files import ReplacedSpans
from tableformat.testing.replacing import replaced_method
from tableformat.testing.table_files import live_files
from tableformat.testing.table_rows import live_tuples, live_values

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("id", pa.int64(), nullable=False)])


def made(catalog: tf.Catalog, version: str = "2", **options: Any) -> tf.Table:
    properties = {"format-version": version, "commit.retry.min-wait-ms": "1"}
    return catalog.create_table("db.t", SCHEMA, key=["n"], properties=properties, **options)


def ranged(catalog: tf.Catalog, **given: Any) -> tf.Table:
    ranges = {"on": ["n"], "bounds": [(0, 30), (50, 60)], "splits": [10, 20], **given}
    return made(catalog, range_partitions=tf.RangePartitions(**ranges))


def rows(*numbers: int, id: int = 0) -> pa.Table:
    return pa.table({"n": numbers, "id": [id] * len(numbers)}, schema=SCHEMA)


def kinds(table: tf.Table) -> Counter[str]:
    return Counter("data" if isinstance(file, DataFile) else file.kind.value for file in live_files(table))


def interval(table: tf.Table, given: Any, **options: Any) -> Any:
    return table.replace_interval(given, on="n", lower=10, upper=20, **options)


def before_the_commit(act: Callable[[], Any], times: int = 1) -> Any:
    """Another writer acts between the look at the head and the commit, in the first attempts."""
    original, left = ReplacedSpans.added_to, [act] * times

    def raced(self: ReplacedSpans, *arguments: Any) -> Any:
        change = original(self, *arguments)
        if left:
            left.pop()()
        return change

    return replaced_method(ReplacedSpans, "added_to", raced)


@pytest.mark.parametrize("version", ["2", "3"])
def test_fully_covered_files_are_removed_without_delete_file(version: str, catalog: tf.Catalog) -> None:
    """RP-19: none is opened, and row deletes of a file leave with it."""
    table = made(catalog, version, partition_by=["truncate(10, n)"])
    table.append(rows(*range(30)))
    table.delete("n = 13", mode="scan")
    for file in live_files(table):
        if "n_trunc=10" in file.file_path:
            Path(file.file_path.removeprefix("file://")).unlink()
    result = interval(table, rows(11, id=1))
    assert (result.deleted_row_count, result.added_delete_files_count, result.added_row_count) == (None, 0, 1)
    assert kinds(table) == {"data": 3}
    assert live_values(table, "n") == [*range(10), 11, *range(20, 30)]
    assert table.verify(snapshot_id=table.snapshot_id).is_clean
    assert interval(table, rows(12, id=2)).deleted_row_count == 1
    with catalog.load_table("db.t").transaction() as transaction:
        transaction.replace_interval(rows(14, id=3), on="n", lower=10, upper=20)
    assert kinds(table.refresh())["range"] == 1
    assert live_values(table, "n") == [*range(10), 14, *range(20, 30)]


def test_partly_covered_files_get_one_range_delete(catalog: tf.Catalog) -> None:
    """RP-19"""
    table = made(catalog)
    for numbers in ((8, 12), (13, 14), (18, 21), (30,)):
        table.append(rows(*numbers))
    result = interval(table, rows(15, id=1))
    assert (result.added_delete_files_count, result.deleted_row_count) == (1, None), "a range delete counts nothing"
    assert kinds(table) == {"data": 4, "range": 1}
    assert live_values(table, "n") == [8, 15, 21, 30]
    assert table.verify().is_clean


@pytest.mark.parametrize("blind", [False, True])
def test_concurrently_added_rows_are_replaced(blind: bool, catalog: tf.Catalog) -> None:
    """RP-19: the head of the attempt decides, so both forms leave the same rows."""
    table = made(catalog)
    table.append(rows(12))
    other = catalog.load_table("db.t")
    with before_the_commit(lambda: other.append(rows(5, 13, 25))):
        if blind:
            other.append(rows(5, 13, 25))
        result = interval(table, rows(15, id=1), blind=blind)
    assert live_values(table.refresh(), "n") == [5, 15, 25]
    assert result.attempts == (1 if blind else 2)
    assert kinds(table)["range"] == 1


def test_unneeded_range_delete_is_dropped_on_retry(catalog: tf.Catalog, tmp_path: Path) -> None:
    """RP-19: the file that crossed the bound is gone when the committing attempt plans."""
    table = made(catalog)
    table.append(rows(8, 12))
    other = catalog.load_table("db.t")
    with before_the_commit(lambda: other.delete("n < 100", mode="scan")):
        result = interval(table, rows(15, id=1))
    assert (result.attempts, result.added_delete_files_count) == (2, 0)
    assert live_values(table.refresh(), "n") == [15]
    assert not list(tmp_path.rglob("*range*"))


def test_replacement_is_blind_with_permanent_concurrent_writers(
    catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RP-19: writers on another machine, which do not use the queue of this one."""
    table = made(catalog)
    monkeypatch.setattr(type(table.iceberg.catalog), "commit_queue", lambda *_: None)
    table.append(rows(12))
    other = catalog.load_table("db.t")
    with before_the_commit(lambda: other.append(rows(13)), times=2):
        result = interval(table, rows(15, id=1))
    assert (result.attempts, result.added_delete_files_count) == (3, 1)
    assert live_values(table.refresh(), "n") == [15]


def test_compaction_of_removed_files_conflicts(catalog: tf.Catalog) -> None:
    """CP-3: replaced rows do not come back through the files that a job is rewriting."""
    table = made(catalog)
    table.append(rows(12))
    table.append(rows(13))
    with table.transaction() as transaction:
        interval(catalog.load_table("db.t"), rows(15))
        transaction.delete("n = 12", mode="scan")
        with pytest.raises(CommitConflictError):
            transaction.commit()
        transaction._is_applied = True
    assert live_values(table.refresh(), "n") == [15]


def test_empty_replacement_batch_is_recorded(catalog: tf.Catalog) -> None:
    """RP-19, CP-14: rows that were added since stay."""
    table = made(catalog)
    batch = {"application_id": "loader", "batch_id": 1}
    assert interval(table, rows(), **batch).snapshot_id is not None
    table.append(rows(12))
    assert interval(table, rows(), **batch).already_applied
    assert live_values(table.refresh(), "n") == [12]


# -- partitions

PARTITIONS: dict[str, Any] = {"by name": "[10, 20)", "by ends": (10, 20), "by bound": tf.bound(10, 20)}


@pytest.mark.parametrize("partition", PARTITIONS.values(), ids=PARTITIONS)
def test_replace_partition(partition: Any, catalog: tf.Catalog) -> None:
    """RP-19: files never cross a border, so none is deleted from."""
    table = ranged(catalog)
    table.append(rows(5, 15, 16, 25, 55))
    assert table.replace_partition(rows(18, id=1), partition).added_delete_files_count == 0
    assert live_tuples(table) == [(5, 0), (18, 1), (25, 0), (55, 0)]


def test_rows_outside_the_partition_are_rejected_individually(catalog: tf.Catalog) -> None:
    """RP-5, RP-19: all rejected rows are counted, both the rows outside of every partition and the rows of other
    partitions."""
    table = ranged(catalog)
    table.append(rows(12))
    given = rows(18, 25, 40, 11, 9)
    with pytest.raises(RowsRefusedError) as caught:
        table.replace_partition(given, "[10, 20)")
    report = caught.value.refused.to_pylist()
    assert [each["row_index"] for each in report] == [1, 2, 4]
    assert report[0]["reason"] == "is outside the partition [10, 20)"
    assert live_values(table.refresh(), "n") == [12]
    result = table.replace_partition(given, "[10, 20)", on_refused="divert")
    assert result.refused["n"].to_pylist() == [25, 40, 9]
    assert live_values(table, "n") == [11, 18]


def test_replace_default_partition(catalog: tf.Catalog) -> None:
    """RP-10, RP-19: all that no bound covers, on every side."""
    table = ranged(catalog, default=True)
    table.append(rows(-5, 5, 40, 70))
    with pytest.raises(RowsRefusedError) as caught:
        table.replace_partition(rows(15, 45), "default")
    assert caught.value.refused["reason"].to_pylist() == ["is outside the default partition"]
    table.replace_partition(rows(45), "default")
    assert live_values(table, "n") == [5, 45]


@pytest.mark.parametrize(
    ("partition", "told"),
    [
        ("[10, 21)", "the range partition '\\[10, 21\\)' does not exist"),
        ("default", "the range partition 'default' does not exist"),
        ("uncovered", "the range partition 'uncovered' does not exist"),
        ((10, 15), "would cut the partition \\[10, 20\\)"),
        ((10, 30), "covers 2 range partitions: \\[10, 20\\), \\[20, 30\\)"),
        ((30, 40), "no range partitions make up \\[30, 40\\)"),
        ((7,), "a bound must be a pair"),
    ],
)
def test_invalid_partition_is_rejected(partition: Any, told: str, catalog: tf.Catalog) -> None:
    table = ranged(catalog)
    with pytest.raises(InvalidArgumentError, match=told):
        table.replace_partition(rows(12), partition)


def test_table_without_range_partitions_suggests_replace_interval(catalog: tf.Catalog) -> None:
    with pytest.raises(InvalidArgumentError, match=r"has no range partitions.*replace_interval"):
        made(catalog).replace_partition(rows(12), "[10, 20)")


def test_concurrently_dropped_partition_rejects_rows(catalog: tf.Catalog) -> None:
    """RP-6, RP-19: it is looked up again after the conflict, and no longer exists."""
    table = ranged(catalog)
    table.append(rows(12))
    other = catalog.load_table("db.t")
    with (
        before_the_commit(lambda: other.range_partitions.drop(10, 20)),
        pytest.raises((InvalidArgumentError, UncoveredRowsError)),
    ):
        table.replace_partition(rows(15), "[10, 20)")
    assert live_values(table.refresh(), "n") == []


def test_replace_partition_in_transaction_includes_staged_rows(catalog: tf.Catalog) -> None:
    """RP-19: blind, as required for an operation after others."""
    table = ranged(catalog)
    with table.transaction() as transaction:
        transaction.append(rows(12, 25))
        transaction.replace_partition(rows(15), "[10, 20)")
    assert live_values(table.refresh(), "n") == [15, 25]
