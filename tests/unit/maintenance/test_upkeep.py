"""Upkeep: a table that is written to is maintained automatically, and its rows stay the same (MT-80 to MT-87)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from maintenance_tables import another_handle, commit_deletes, keyed_table, rows, unnamed_position_delete

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.errors import CommitStateUnknownError, InvalidArgumentError
from tableformat.maintenance.compaction.compact import CompactResult
from tableformat.maintenance.compaction.levels import BASE_REASON
from tableformat.maintenance.conversion.convert_deletes import ConvertResult, convert_deletes
from tableformat.maintenance.upkeep import rounds
from tableformat.maintenance.upkeep.background import BACKGROUND, Background
from tableformat.maintenance.upkeep.ledger import Ledger
from tableformat.metadata.content_file import DeleteKind
from tableformat.storage.location import local_path
from tableformat.testing.acts import interrupted_by
from tableformat.testing.table_files import live_data_files, live_delete_files

EAGER = {
    "tableformat.upkeep.files-per-level": "4",
    "tableformat.upkeep.write-amplification": "1000",
    "commit.manifest.min-count-to-merge": "8",
}


def table_of(directory: Path, mode: str, **more: str) -> tf.Table:
    return keyed_table(directory, properties={**EAGER, "tableformat.upkeep": mode, **more})


def replace_often(table: tf.Table, count: int) -> dict[tuple[str, int], str]:
    """Replacements of ids that overlap and do not follow each other (RD-14); the rows that are left."""
    left: dict[tuple[str, int], str] = {}
    for number in range(count):
        ids = range(number % 5, number % 5 + 8, 2)
        table.replace(rows("a", ids, f"p{number}"), prefix=["id1", "id2"])
        left.update({("a", each): f"p{number}" for each in ids})
    return left


def found(table: tf.Table) -> dict[tuple[str, int], str]:
    listed = table.refresh().scan().to_arrow().to_pylist()
    assert len(listed) == len({(row["id1"], row["id2"]) for row in listed})
    return {(row["id1"], row["id2"]): row["payload"] for row in listed}


def summary(table: tf.Table) -> dict[str, str]:
    snapshot = table.refresh().view.snapshot
    assert snapshot is not None
    assert snapshot.summary is not None
    return snapshot.summary.additional_properties


def test_writer_mode_bounds_the_number_of_files(tmp_path: Path) -> None:
    """MT-80, MT-82."""
    table = table_of(tmp_path, "writer")
    left = replace_often(table, 40)
    assert found(table) == left
    assert int(summary(table)["total-data-files"]) < 12
    assert int(summary(table)["total-delete-files"]) < 12
    assert table.verify(deep=True).is_clean


def test_upkeep_off_does_not_merge_files(tmp_path: Path) -> None:
    """MT-83."""
    table = table_of(tmp_path, "off")
    replace_often(table, 10)
    assert int(summary(table)["total-data-files"]) == 10
    assert "tableformat.history.max-snapshots" not in table.properties


def test_handle_stays_at_the_snapshot_of_its_operation(tmp_path: Path) -> None:
    table = table_of(tmp_path, "writer")
    replace_often(table, 3)
    result = table.replace(rows("a", [0]), prefix=["id1", "id2"])
    assert table.snapshot_id == result.snapshot_id
    assert table.refresh().snapshot_id != result.snapshot_id


def test_background_mode_runs_in_a_thread(tmp_path: Path) -> None:
    """MT-86."""
    table = table_of(tmp_path, "background")
    left = replace_often(table, 24)
    assert table.maintenance.wait_for_upkeep(60)
    assert found(table) == left
    metrics = table.maintenance.upkeep_metrics
    assert metrics.merged_data_files_count >= 4
    assert (metrics.failure_count, metrics.last_failure) == (0, "")
    assert int(summary(table)["total-data-files"]) < 20


def test_background_thread_ends_when_no_work_is_due(tmp_path: Path) -> None:
    table = table_of(tmp_path, "background")
    background = Background()
    background.notify(another_handle(table).iceberg, "main")
    assert background.wait(30)
    for thread in threading.enumerate():
        if thread.name == "tableformat-upkeep":
            thread.join(10)
            assert not thread.is_alive()


@pytest.mark.parametrize("mode", ["writer", "background"])
def test_table_purged_during_a_round_is_not_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    """MT-101: the files that the round was about to read are gone."""
    table = table_of(tmp_path, mode)
    replace_often(table, 3)
    plan = rounds.plan_levels

    def purging(*arguments: Any, **keywords: Any) -> Any:
        planned = plan(*arguments, **keywords)
        assert planned.groups
        table.catalog.drop_table("db.t", purge=True)
        return planned

    monkeypatch.setattr(rounds, "plan_levels", purging)
    table.replace(rows("a", [0]), prefix=["id1", "id2"])
    assert BACKGROUND.wait(60)
    metrics = table.maintenance.upkeep_metrics
    assert (metrics.failure_count, metrics.last_failure, caplog.messages) == (0, "", [])
    assert not table.catalog.list_tables("db")
    assert not Path(str(local_path(table.location))).exists()


def test_background_upkeep_runs_in_one_process_at_a_time(tmp_path: Path) -> None:
    """MT-86."""
    table = table_of(tmp_path, "off")
    replace_often(table, 8)
    table.set_properties({"tableformat.upkeep": "background"})
    queue = table.iceberg.catalog.upkeep_queue(table.metadata.table_uuid)
    ticket = queue.take_if_free()
    assert queue.take_if_free() is None
    background = Background()
    background.notify(another_handle(table).iceberg, "main")
    assert background.wait(30)
    assert table.maintenance.upkeep_metrics.skipped_count == 1
    assert int(summary(table)["total-data-files"]) == 8
    ticket.give_back()
    background.notify(another_handle(table).iceberg, "main")
    assert background.wait(30)
    assert int(summary(table)["total-data-files"]) < 8


def test_lost_race_discards_only_the_merge(tmp_path: Path) -> None:
    """MT-85."""
    table = table_of(tmp_path, "off")
    left = replace_often(table, 8)
    with interrupted_by(lambda: another_handle(table).delete("id2 = 3", mode="scan")):
        (result,) = table.maintenance.upkeep()
    assert (result.lost_race_count, result.merged_data_files_count, result.is_over) == (1, 0, True)
    assert found(table) == {key: payload for key, payload in left.items() if key != ("a", 3)}
    directory = Path(str(local_path(table.location))) / "data"
    assert len(list(directory.rglob("*.parquet"))) == int(summary(table)["total-data-files"]) + sum(
        1 for _ in directory.rglob("*delete*")
    )
    assert table.maintenance.upkeep()[0].merged_data_files_count > 0


@pytest.mark.parametrize(
    ("name", "value"), [("tableformat.upkeep.write-amplification", "1"), ("tableformat.upkeep.max-bytes", "1")]
)
def test_write_budgets_limit_merges(tmp_path: Path, name: str, value: str) -> None:
    """MT-84."""
    table = table_of(tmp_path, "writer", **{name: value})
    replace_often(table, 12)
    assert int(summary(table)["total-data-files"]) == 12


def test_write_amplification_ledger_counts_bytes(tmp_path: Path) -> None:
    table = table_of(tmp_path, "off", **{"tableformat.history.max-snapshots": "12"})
    written = rewritten = 0
    for number in range(20):
        table.replace(rows("a", range(number, number + 3)), prefix=["id1", "id2"])
        written += int(summary(table)["added-files-size"])
        for result in table.maintenance.upkeep():
            rewritten += result.written_bytes
        table.maintenance.expire_snapshots()
    ledger = Ledger.of(table.metadata, table.view.snapshot)
    assert (ledger.written_bytes, ledger.rewritten_bytes) == (written, rewritten)
    assert len(table.metadata.snapshots) == 12


def test_upkeep_failure_does_not_fail_the_writer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = table_of(tmp_path, "writer")
    replace_often(table, 2)
    path = local_path(table.inspect.data_files()["file_path"][0].as_py())
    Path(str(path)).write_bytes(b"no longer Parquet")
    with caplog.at_level(logging.WARNING):
        result = None
        for number in range(3):
            result = table.replace(rows("b", [number]), prefix=["id1", "id2"])
    assert result is not None
    assert result.added_row_count == 1
    assert "the preceding commit was applied" in caplog.text
    metrics = table.maintenance.upkeep_metrics
    assert metrics.failure_count >= 1
    assert metrics.last_failure.startswith("CorruptFileError")


@contextmanager
def waiting(table: tf.Table) -> Iterator[tf.Table]:
    """A table with pending background upkeep, which starts at the end of the block."""
    replace_often(table, 8)
    table.set_properties({"tableformat.upkeep": "background"})
    handle = another_handle(table).iceberg
    yield table
    background = Background()
    background.notify(handle, "main")
    assert background.wait(30)


def test_upkeep_disabled_while_waiting_does_not_run(tmp_path: Path) -> None:
    """MT-101: the current properties count."""
    with waiting(table_of(tmp_path, "off")) as table:
        table.set_properties({"tableformat.upkeep": "off"})
    assert int(summary(table)["total-data-files"]) == 8


def test_branch_dropped_before_upkeep_is_not_a_failure(tmp_path: Path) -> None:
    """MT-101: one that was published, for example."""
    table = table_of(tmp_path, "off")
    with waiting(table):
        table.create_branch("b")
    handle = another_handle(table).iceberg
    table.drop_branch("b")
    background = Background()
    background.notify(handle, "b")
    assert background.wait(30)
    assert table.maintenance.upkeep_metrics.failure_count == 0


def test_ctrl_c_during_writer_upkeep_stops_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-83, CP-51: it was logged as a failure of upkeep, and the writer went on. The writer's own commit is known."""
    eager = {"tableformat.upkeep.files-per-level": "2", "tableformat.upkeep.write-amplification": "1000"}
    table = keyed_table(tmp_path, properties={"tableformat.upkeep": "writer", **eager})
    table.append(rows("a", [1]))
    commit, count = EmbeddedCatalog.commit_table, 0

    def interrupted(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        answer = commit(*arguments)
        if count > 1:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(EmbeddedCatalog, "commit_table", interrupted)
    with pytest.raises(KeyboardInterrupt) as told:
        table.append(rows("a", [2]))
    assert not isinstance(told.value, CommitStateUnknownError)
    assert table.refresh().scan().count() == 2
    assert table.verify(deep=True).is_clean


def test_upkeep_expires_snapshots_by_table_property(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-87."""
    table = table_of(tmp_path, "writer")
    table.set_properties({"tableformat.history.max-snapshots": "5"})
    monkeypatch.setattr(rounds, "EXPIRED_AT_ONCE", 4)
    replace_often(table, 24)
    assert len(table.refresh().metadata.snapshots) < 14


def test_upkeep_does_not_change_a_publish_target(tmp_path: Path) -> None:
    table = table_of(tmp_path, "off")
    table.append(rows("a", range(3)))
    table.create_branch("ingest")
    table.set_properties({"tableformat.publish-target.ingest": "main"})
    for number in range(8):
        table.append(rows("b", [number]))
    assert [result.jobs for result in table.maintenance.upkeep()] == [()]
    assert int(summary(table)["total-data-files"]) == 9


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path, "off")
    replace_often(table, 8)
    (result,) = table.maintenance.upkeep(dry_run=True)
    assert result.merged_data_files_count == 8
    assert int(summary(table)["total-data-files"]) == 8


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tableformat.upkeep", "sometimes"),
        ("tableformat.upkeep.files-per-level", "0"),
        ("tableformat.upkeep.files-per-level", "1"),
        ("tableformat.upkeep.write-amplification", "0.5"),
        ("tableformat.upkeep.write-amplification", "much"),
        ("tableformat.history.max-snapshots", "none"),
    ],
)
def test_invalid_upkeep_properties_are_rejected_when_set(tmp_path: Path, name: str, value: str) -> None:
    table = keyed_table(tmp_path)
    with pytest.raises(InvalidArgumentError, match=name):
        table.set_properties({name: value})


def test_base_is_merged_only_at_its_share(tmp_path: Path) -> None:
    """MT-81."""
    table = table_of(tmp_path, "off")
    table.append(rows("a", range(20_000)))
    for first in (0, 2_500):
        table.replace(rows("a", range(first, first + 2_500)), prefix=["id1", "id2"])
        assert sum(result.merged_data_files_count for result in table.maintenance.upkeep()) == 0
    table.replace(rows("a", range(5_000, 7_500)), prefix=["id1", "id2"])
    merge = table.maintenance.upkeep()[0].jobs[0]
    assert isinstance(merge, CompactResult)
    assert merge.plan is not None
    assert [group.reasons for group in merge.plan.groups] == [(BASE_REASON,)]
    assert table.scan().count() == 20_000
    assert (table.inspect.data_files().num_rows, table.inspect.delete_files().num_rows) == (1, 0)


def test_row_deletes_of_a_merged_base_are_removed(tmp_path: Path) -> None:
    """MT-95: a file of another writer that names several data files, which no single group removes."""
    table = table_of(tmp_path, "off")
    table.append(rows("a", range(20_000)))
    for first in (0, 2_500, 5_000):
        table.append(rows("a", range(first, first + 2_500)))
    base, *over = sorted(live_data_files(table), key=lambda data: -data.record_count)
    pairs = [(base, number) for number in range(7_500)] + [(data, 7) for data in over]
    commit_deletes(table, unnamed_position_delete(table, pairs))
    before = table.scan().count()
    (merged, *_) = table.maintenance.upkeep()
    assert merged.merged_data_files_count == 4
    assert live_delete_files(table.refresh()) == []
    assert table.scan().count() == before == 19_997


CONVERSION_ALONE = {"tableformat.upkeep.files-per-level": "100", "commit.manifest.min-count-to-merge": "1000"}
"""Nothing else is due."""


def upserts(table: tf.Table, count: int, *, ids: int = 40) -> dict[tuple[str, int], str]:
    """A base of many rows, and upserts of one row each; the rows that are left."""
    table.append(rows("a", range(ids), "base"))
    left = {("a", each): "base" for each in range(ids)}
    for number in range(count):
        table.upsert(rows("a", [number], f"p{number}"))
        left["a", number] = f"p{number}"
    return left


def kinds_of(table: tf.Table) -> set[DeleteKind]:
    return {each.kind for each in rounds.delete_files(table.refresh().view)}


@pytest.mark.parametrize("version", ["2", "3"])
def test_equality_deletes_of_many_keys_are_converted(tmp_path: Path, version: str) -> None:
    """MT-89: range deletes stay what they are."""
    table = table_of(tmp_path, "off", **CONVERSION_ALONE, **{"format-version": version})
    left = upserts(table, 5)
    table.delete_prefix({"id1": "a", "id2": 30})
    assert table.maintenance.upkeep(dry_run=True)[0].jobs != ()
    (result,) = table.maintenance.upkeep()
    (converted,) = result.jobs
    assert isinstance(converted, ConvertResult)
    assert (converted.removed_equality_delete_files_count, converted.removed_range_delete_files_count) == (5, 0)
    assert result.written_bytes == converted.rewritten_bytes > 0
    assert result.converted_delete_files_count == 5
    assert table.maintenance.upkeep()[0].jobs == ()
    assert kinds_of(table) == {DeleteKind.RANGE, DeleteKind.POSITION if version == "2" else DeleteKind.DELETION_VECTOR}
    del left["a", 30]
    assert found(table) == left
    assert table.verify(deep=True).is_clean
    assert table.maintenance.convert_deletes().removed_range_delete_files_count == 1
    assert found(table) == left


def test_conversion_output_counts_as_rewritten(tmp_path: Path) -> None:
    """MT-84, MT-89"""
    table = table_of(tmp_path, "off", **CONVERSION_ALONE)
    upserts(table, 5)
    before = Ledger.of(table.metadata, table.view.snapshot)
    table.maintenance.upkeep()
    after = Ledger.of(table.refresh().metadata, table.view.snapshot)
    assert after.written_bytes == before.written_bytes
    assert (after.new_data_file_count, after.new_delete_file_count) == (0, 0)
    assert after.rewritten_bytes > before.rewritten_bytes
    tight = table_of(tmp_path / "tight", "off", **CONVERSION_ALONE, **{"tableformat.upkeep.write-amplification": "1"})
    upserts(tight, 5)
    assert tight.maintenance.upkeep()[0].jobs == ()


def test_conflicting_conversion_is_abandoned(tmp_path: Path) -> None:
    """MT-85, MT-89"""
    table = table_of(tmp_path, "off", **CONVERSION_ALONE)
    left = upserts(table, 5)
    with interrupted_by(lambda: another_handle(table).maintenance.compact(rewrite_all=True)):
        (result,) = table.maintenance.upkeep()
    assert (result.lost_race_count, result.jobs, result.is_over) == (1, (), True)
    assert found(table) == left
    table.upsert(rows("a", range(20), "again"))
    left |= {("a", each): "again" for each in range(20)}
    assert table.maintenance.upkeep()[0].lost_race_count == 0
    assert DeleteKind.EQUALITY not in kinds_of(table)
    assert found(table) == left


def test_equality_only_conversion_writes_no_record(tmp_path: Path) -> None:
    """MT-14, MT-89: of the others nothing was searched."""
    table = table_of(tmp_path, "off", **{"write.target-file-size-bytes": "1"})
    for number in range(4):
        table.append(rows("a", range(10 * number, 10 * number + 10), "base"))
    table.delete_rows(rows("a", range(0, 40, 3), "").select(["id1", "id2"]))
    table.delete_prefix({"id1": "a", "id2": 25})
    convert_deletes(table.iceberg, "main", kinds={DeleteKind.EQUALITY}, max_commits=4)
    assert found(table).keys() == {("a", each) for each in range(40) if each % 3 and each != 25}
    assert table.maintenance.convert_deletes().removed_range_delete_files_count == 1
    assert found(table).keys() == {("a", each) for each in range(40) if each % 3 and each != 25}
