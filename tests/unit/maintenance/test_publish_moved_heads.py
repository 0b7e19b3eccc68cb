"""The plan of a publish is carried out on heads that have moved since, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from maintenance_tables import planned, rows
from published_tables import TARGET, TEN_ROWS, branched, heads, opened
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.errors import CommitConflictError, PublishRefusedError
from tableformat.maintenance import publish
from tableformat.maintenance.conversion.convert_deletes import ConvertResult, convert_deletes
from tableformat.maintenance.publishing.publish_beside import ConvertedSnapshot, publish_beside
from tableformat.metadata.content_file import DeleteFile
from tableformat.testing.table_files import live_delete_files
from tableformat.testing.table_rows import live_tuples


def planned_now(ingest: tf.Table, *deletes: DeleteFile) -> ConvertedSnapshot:
    """The conversion that a publish has planned for the current branch; the test carries it out after other commits."""
    view = ingest.refresh().view
    change = TableChange(
        operation=Operation.REPLACE, kind=ChangeKind.DELETE_REWRITE, added_delete_files=deletes, **planned(ingest)
    )
    return ConvertedSnapshot(view, change)


def test_concurrently_published_target_is_not_moved_back(tmp_path: Path) -> None:
    """LK-16: by another process, which was faster."""
    main, ingest = branched(tmp_path)
    converted = planned_now(ingest)
    ingest.append(rows("b", [1]))
    main.maintenance.publish()
    before = heads(main)
    with pytest.raises(publish._NotReadyError):
        publish._move_target(main.iceberg, "ingest", converted)
    assert heads(main) == before
    assert live_tuples(main.refresh())[-1] == ("b", 1, "x")


def test_target_is_not_moved_to_a_rolled_back_snapshot(tmp_path: Path) -> None:
    """LK-16"""
    main, ingest = branched(tmp_path)
    start = ingest.snapshot_id
    main.maintenance.publish()
    ingest.refresh().append(rows("b", [1]))
    converted = planned_now(ingest)
    ingest.rollback(snapshot_id=start)
    before = heads(main)
    with pytest.raises(publish._NotReadyError):
        publish._move_target(main.iceberg, "ingest", converted)
    assert heads(main) == before


def test_target_does_not_receive_removed_delete_files(tmp_path: Path) -> None:
    """LK-16: they may be removed with the branch's older snapshots."""
    main, ingest = branched(tmp_path)
    main.maintenance.publish()
    ingest.refresh().delete("id2 = 3", mode="scan")
    deletes = live_delete_files(ingest)
    ingest.maintenance.compact(rewrite_all=True)
    assert live_delete_files(ingest) == []
    before = heads(main)
    with pytest.raises(CommitConflictError):
        publish_beside(main.refresh().iceberg, "ingest", "main", planned_now(ingest, *deletes))
    assert heads(main) == before


def test_target_is_moved_to_the_planned_snapshot(tmp_path: Path) -> None:
    """LK-16: the branch has received a delete since, which the target must not show."""
    main, ingest = branched(tmp_path)
    main.maintenance.publish()
    ingest.refresh().append(rows("b", [1]))
    converted = planned_now(ingest)
    ingest.delete_prefix({"id1": "a"})
    publish._move_target(main.iceberg, "ingest", converted)
    assert live_tuples(main.refresh()) == [*TEN_ROWS, ("b", 1, "x")]
    assert live_delete_files(main) == []


def test_rows_added_to_target_during_publish_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-31, MT-33: rows that were added before them have been carried."""
    main, ingest = branched(tmp_path)
    ingest.append(rows("b", [1]))
    others = iter([lambda: opened(tmp_path).append(rows("late", [1]))])

    def convert(*arguments: Any, **options: Any) -> ConvertResult:
        converted = convert_deletes(*arguments, **options)
        next(others, lambda: None)()
        return converted

    monkeypatch.setattr(publish, "convert_deletes", convert)
    main.maintenance.publish()
    assert live_tuples(main.refresh()) == [*TEN_ROWS, ("b", 1, "x"), ("late", 1, "x")]


def test_target_moves_without_conversion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LK-16: rows are added to the target in each round, and to the branch in the fourth, with a delete."""
    main, ingest = branched(tmp_path)
    ingest.append(rows("b", [1]))
    numbers = count(1)

    def convert(*arguments: Any, **options: Any) -> ConvertResult:
        converted = convert_deletes(*arguments, **options)
        number = next(numbers)
        if number <= 3:
            opened(tmp_path).append(rows("late", [number]))
        else:
            opened(tmp_path, "ingest").upsert(rows("b", [1, 2], "new"))
        return converted

    monkeypatch.setattr(publish, "convert_deletes", convert)
    result = opened(tmp_path).maintenance.publish()
    assert (result.rounds, result.carried_records_count) == (4, 3)
    assert heads(main)[0] == result.snapshot_id != heads(main)[1]
    late = [("late", number, "x") for number in (1, 2, 3)]
    assert live_tuples(main.refresh()) == [*TEN_ROWS, ("b", 1, "x"), *late]


def test_stale_handle_publishes_to_the_current_target(tmp_path: Path) -> None:
    """MT-33: in one commit with the conversion."""
    main, ingest = branched(tmp_path)
    ingest.maintenance.publish()
    head = main.refresh().append(rows("late", [1])).snapshot_id
    commits = len(main.metadata.metadata_log)
    opened(tmp_path, "ingest").delete_prefix({"id1": "a"})
    result = ingest.maintenance.publish()
    assert result.previous_snapshot_id == head
    assert heads(main) == (result.snapshot_id, result.snapshot_id)
    # The delete, the rows of the target that are carried, and the conversion.
    assert len(main.refresh().metadata.metadata_log) == commits + 3
    assert live_tuples(main) == [("late", 1, "x")]


def before_commit(table: tf.Table, number: int, act: Callable[[], object]) -> None:
    """Somebody else acts before that commit of the table's catalog, counted from now on."""
    catalog: Any = table.iceberg.catalog
    numbers = count()
    real = catalog.commit_table

    def interrupted(*arguments: Any) -> Any:
        if next(numbers) == number:
            act()
        return real(*arguments)

    catalog.commit_table = interrupted


def name_no_target(directory: Path) -> None:
    """Another writer takes the property away, and adds a row to what was the target."""
    other = opened(directory)
    other.remove_properties(*TARGET)
    other.append(rows("late", [1]))


@pytest.mark.parametrize("number", range(3))
def test_removed_publish_target_is_not_moved(tmp_path: Path, number: int) -> None:
    """MT-30, MT-32: the property is removed before the tag, the carry or the conversion is committed."""
    main, ingest = branched(tmp_path)
    main.append(rows("m", [1]))
    ingest.refresh().delete_prefix({"id1": "a", "id2": 3})
    before_commit(main, number, lambda: name_no_target(tmp_path))
    with pytest.raises(PublishRefusedError):
        main.maintenance.publish()
    assert live_tuples(main.refresh()) == [*TEN_ROWS, ("late", 1, "x"), ("m", 1, "x")]
    assert main.verify(deep=True).errors == ()


@pytest.mark.parametrize("number", range(3))
def test_branch_with_removed_target_is_converted(tmp_path: Path, number: int) -> None:
    """MT-31: without a target there is nothing to carry."""
    main, ingest = branched(tmp_path)
    main.append(rows("m", [1]))
    ingest.refresh().delete_prefix({"id1": "a", "id2": 3})
    before_commit(ingest, number, lambda: name_no_target(tmp_path))
    assert ingest.maintenance.convert_deletes().removed_range_delete_files_count == 1
    carried = [("m", 1, "x")] if number == 2 else []
    assert live_tuples(ingest) == [*(row for row in TEN_ROWS if row[1] != 3), *carried]


def test_target_moved_during_carry_needs_no_extra_round(tmp_path: Path) -> None:
    """MT-31, MT-33: concurrently added rows are carried too, before anything is converted."""
    main, ingest = branched(tmp_path)
    main.append(rows("m", [1]))
    ingest.refresh().delete_prefix({"id1": "a", "id2": 3})
    before_commit(ingest, 1, lambda: opened(tmp_path).append(rows("m", [2])))
    result = ingest.maintenance.publish()
    assert (result.rounds, result.carried_data_files_count, result.carried_records_count) == (1, 2, 2)
