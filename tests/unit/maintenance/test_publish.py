"""A branch that every engine reads is moved forward to data that was written elsewhere, and no row is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from maintenance_tables import keyed_table, rows
from published_tables import TARGET, TEN_ROWS, branched, heads, opened
from pyiceberg.catalog import load_catalog

import tableformat as tf
from tableformat.commit.change import is_keyed
from tableformat.commit.publish_target import CARRIED_UNTIL
from tableformat.commit.table_diff import live_files, manifests_of_snapshot
from tableformat.errors import CommitConflictError, InvalidArgumentError, PublishRefusedError
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.testing.table_files import live_delete_files
from tableformat.testing.table_rows import live_tuples


def read_by_pyiceberg(tmp_path: Path) -> list[tuple[str, int, str]]:
    catalog = load_catalog(
        "x", **{"type": "sql", "uri": f"sqlite:///{tmp_path}/lake/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    )
    catalog.name = "tableformat"
    return live_tuples(catalog.load_table("db.t"))


def test_target_moves_to_the_converted_branch(tmp_path: Path) -> None:
    """MT-33: both branches end at one snapshot without keyed deletes, and PyIceberg reads it."""
    main, ingest = branched(tmp_path)
    ingest.delete_prefix({"id1": "a", "id2": 3})
    ingest.upsert(rows("a", [4], "new"))
    assert read_by_pyiceberg(tmp_path) == TEN_ROWS
    result = main.maintenance.publish()
    assert (result.removed_range_delete_files_count, result.removed_equality_delete_files_count) == (1, 1)
    assert heads(main) == (result.snapshot_id, result.snapshot_id)
    expected = [("a", number, "new" if number == 4 else "x") for number in range(10) if number != 3]
    assert live_tuples(main) == live_tuples(ingest.refresh()) == read_by_pyiceberg(tmp_path) == expected
    assert not any(is_keyed(delete) for delete in live_delete_files(main))


def in_transaction(table: tf.Table) -> None:
    with table.transaction() as transaction:
        transaction.replace_interval(rows("b", [3], "new"), on="id2", lower=0, upper=50)


REPLACED: dict[str, Callable[[tf.Table], Any]] = {
    "replace_interval": lambda table: table.replace_interval(rows("b", [3], "new"), on="id2", lower=0, upper=50),
    "replace_interval, blind": lambda table: table.replace_interval(
        rows("b", [3], "new"), on="id2", lower=0, upper=50, blind=True
    ),
    "in a transaction": in_transaction,
    "delete": lambda table: table.delete("id2 < 50"),
    "delete_range": lambda table: table.delete_range(on=["id2"], upper=(50,)),
}


@pytest.mark.parametrize("is_straddling", [False, True])
@pytest.mark.parametrize("name", REPLACED)
def test_replaced_interval_removes_earlier_target_rows(tmp_path: Path, name: str, is_straddling: bool) -> None:
    """RP-17, RP-19: whether the branch's own files lie inside or not; what the target got afterwards stays."""
    main, ingest = branched(tmp_path)
    if is_straddling:
        ingest.append(rows("c", [40, 70]))
    main.refresh().append(rows("target", [5, 60], "before"))
    REPLACED[name](ingest.refresh())
    main.refresh().append(rows("target", [6], "after"))
    main.maintenance.publish()
    new = [] if name.startswith("delete") else [("b", 3, "new")]
    kept = [("c", 70, "x")] if is_straddling else []
    expected = [*new, *kept, ("target", 6, "after"), ("target", 60, "before")]
    assert live_tuples(main.refresh()) == live_tuples(ingest.refresh()) == expected


def test_target_moves_once_after_a_multi_commit_conversion(tmp_path: Path) -> None:
    """MT-33: what every engine reads has keyed deletes at no moment."""
    main, ingest = branched(tmp_path, properties={"write.target-file-size-bytes": "1"})
    for letter in "bcd":
        ingest.append(rows(letter, range(3)))
    ingest.delete_rows(rows("a", [3]).select(["id1", "id2"]))
    ingest.delete_rows(pa.table({"id1": ["b", "c", "d"], "id2": [1, 1, 1]}))
    before = len(main.refresh().metadata.snapshots)
    main.maintenance.publish()
    assert len(main.metadata.snapshots) > before + 1
    assert live_tuples(main) == live_tuples(ingest.refresh()) == read_by_pyiceberg(tmp_path)
    assert len(live_tuples(main)) == 15
    shown = [entry.snapshot_id for entry in main.metadata.snapshot_log]
    assert len(shown) == 2
    for snapshot_id in shown:
        snapshot = main.metadata.snapshot_by_id(snapshot_id)
        manifests = manifests_of_snapshot(main.view.io, snapshot)
        deletes = live_files(main.view.io, main.metadata, manifests, ManifestContent.DELETES)
        assert not any(is_keyed(delete) for delete in deletes)


def test_publish_without_changes_only_moves_the_target(tmp_path: Path) -> None:
    """MT-33"""
    main, ingest = branched(tmp_path)
    before = heads(main)
    assert main.maintenance.publish().snapshot_id == before[0]
    ingest.append(rows("b", [1]))
    assert main.maintenance.publish().snapshot_id == ingest.refresh().snapshot_id, "nothing to convert: moved only"
    assert live_tuples(main)[-1] == ("b", 1, "x")


def test_later_branch_deletes_apply_to_rows_appended_to_target(tmp_path: Path) -> None:
    """MT-31: the counter-example. If the row `late` were carried after the conversion, it would be live, because its
    delete would be gone."""
    main, ingest = branched(tmp_path)
    ingest.delete_prefix({"id1": "early"})
    main.append(rows("early", [1]))
    main.append(rows("late", [1]))
    ingest.refresh().delete_prefix({"id1": "late"})
    result = ingest.maintenance.publish()
    assert (result.carried_data_files_count, result.carried_records_count) == (2, 2)
    names = {row[0] for row in live_tuples(main.refresh())}
    assert names == {"a", "early"}, "deleted before it came: stays; deleted after: goes"
    assert names == {row[0] for row in read_by_pyiceberg(tmp_path)}


def test_branch_conversion_carries_target_rows_first(tmp_path: Path) -> None:
    """MT-31: if the branch is converted separately, between two publishes, the delete must still apply to the row."""
    main, ingest = branched(tmp_path)
    main.append(rows("late", [1]))
    ingest.refresh().delete_prefix({"id1": "late"})
    ingest.maintenance.convert_deletes()
    assert ("late", 1, "x") in live_tuples(main.refresh()), "not published yet"
    main.maintenance.publish()
    assert {row[0] for row in live_tuples(main)} == {"a"}


@pytest.mark.parametrize("job", ["drop_dead_deletes", "merge_range_deletes"])
def test_delete_needed_only_by_the_target_is_kept(tmp_path: Path, job: str) -> None:
    """MT-31: dead on the branch alone, but a row on the target waits for it."""
    main, ingest = branched(tmp_path)
    main.append(rows("late", [1]))
    ingest.refresh().delete_prefix({"id1": "late"})
    ingest.delete_prefix({"id1": "nowhere"})
    getattr(ingest.maintenance, job)()
    assert len(live_delete_files(ingest)) == 1
    main.maintenance.publish()
    assert {row[0] for row in live_tuples(main)} == {"a"}


def test_carried_rows_are_not_carried_again(tmp_path: Path) -> None:
    """MT-31: the branch has deleted the carried row in the meantime; adding the file again would bring the row back."""
    main, ingest = branched(tmp_path)
    main.append(rows("late", [1]))
    ingest.refresh().delete_prefix({"id1": "late"})
    ingest.maintenance.convert_deletes()
    assert "late" not in {row[0] for row in live_tuples(ingest)}
    ingest.append(rows("more", [1]))
    ingest.maintenance.convert_deletes()
    main.append(rows("more", [2]))
    main.maintenance.publish()
    assert live_tuples(main) == [*TEN_ROWS, ("more", 1, "x"), ("more", 2, "x")]


def test_rolled_back_branch_receives_the_rows_again(tmp_path: Path) -> None:
    """MT-31: the tag says that the branch has them, but the branch was moved back to a snapshot before them."""
    main, ingest = branched(tmp_path)
    ingest.append(rows("b", [1]))
    before = ingest.snapshot_id
    main.refresh().append(rows("late", [1, 2]))
    ingest.refresh().delete_prefix({"id1": "late", "id2": 2})
    ingest.maintenance.convert_deletes()
    assert ("late", 1, "x") in live_tuples(ingest)
    ingest.rollback(snapshot_id=before)
    assert ("late", 1, "x") not in live_tuples(ingest)
    main.maintenance.publish()
    assert [row for row in live_tuples(main) if row[0] == "late"] == [("late", 1, "x"), ("late", 2, "x")]


def test_target_moved_during_carry(tmp_path: Path) -> None:
    """MT-31: each snapshot of the branch records the state of the target that it contains. So after a rollback it is
    known what to carry."""
    main, ingest = branched(tmp_path)
    main.append(rows("m", [1]))
    catalog, script = ingest.iceberg.catalog, [lambda: opened(tmp_path).append(rows("m", [2]))]
    real = catalog.commit_table

    def interrupted(*arguments: Any) -> Any:
        if script and CARRIED_UNTIL in repr(arguments):
            script.pop()()
        return real(*arguments)

    catalog.commit_table = interrupted
    ingest.refresh().maintenance.convert_deletes()
    assert script == []
    assert [row for row in live_tuples(ingest) if row[0] == "m"] == [("m", 1, "x"), ("m", 2, "x")]
    carried = ingest.metadata.snapshot_by_id(ingest.snapshot_id)
    assert carried is not None
    assert carried.summary is not None
    assert int(carried.summary.additional_properties[CARRIED_UNTIL]) == main.refresh().snapshot_id


def test_repeated_publishing_of_concurrent_writes(tmp_path: Path) -> None:
    """MT-33: again and again, both sides writing."""
    main, ingest = branched(tmp_path)
    for turn in range(3):
        main.refresh().append(rows("m", [turn]))
        ingest.refresh().upsert(rows("a", [turn], f"turn {turn}"))
        ingest.maintenance.publish()
        assert live_tuples(main.refresh()) == live_tuples(ingest.refresh()) == read_by_pyiceberg(tmp_path)
    assert [row for row in live_tuples(main) if row[0] == "m"] == [("m", turn, "x") for turn in range(3)]
    assert [row[2] for row in live_tuples(main)[:4]] == ["turn 0", "turn 1", "turn 2", "x"]


def by_foreign_writer(main: tf.Table, change: Callable[[tf.Table], Any]) -> None:
    """Change the table as another program would, which does not know the property."""
    main.iceberg.transaction().remove_properties(*TARGET).commit_transaction()
    main.refresh()
    change(main)
    main.set_properties(**TARGET)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda main: main.delete(where="id2 = 1", mode="scan"), "delete files were added"),
        (lambda main: main.delete(where="id1 = 'a'", mode="scan"), "data files were removed"),
        (lambda main: main.overwrite(rows("z", [1])), "delete files were added"),
    ],
)
def test_publish_rejects_target_with_deletes_or_rewrites(tmp_path: Path, change: Any, what: str) -> None:
    """MT-32: a clear error, and nothing moves."""
    main, ingest = branched(tmp_path)
    ingest.delete_prefix({"id1": "a", "id2": 3})
    by_foreign_writer(main, change)
    before = heads(main)
    with pytest.raises(PublishRefusedError, match=what):
        main.maintenance.publish()
    with pytest.raises(PublishRefusedError, match=what):
        main.maintenance.publish(dry_run=True)
    assert heads(main) == before


@pytest.mark.parametrize("is_compacted", [False, True])
def test_publish_rejects_deletes_converted_before_target_was_set(tmp_path: Path, is_compacted: bool) -> None:
    """MT-32: the conversion did not see the target's rows, so carrying them now would bring deleted rows back. Later
    jobs, or a delete alone, make no difference."""
    main = keyed_table(tmp_path)
    main.append(rows("a", range(10)))
    main.create_branch("ingest")
    ingest = opened(tmp_path, "ingest")
    main.append(rows("late", [1]))
    ingest.refresh().delete_prefix({"id1": "late"})
    ingest.maintenance.convert_deletes()
    if is_compacted:
        assert ingest.maintenance.compact(rewrite_all=True).commit_count == 1
    before = heads(main)
    with pytest.raises(PublishRefusedError):
        main.maintenance.publish()
    assert heads(main) == before


def test_deletes_and_rewrites_on_a_publish_target_are_rejected(tmp_path: Path) -> None:
    """MT-30: all kinds of deletes; appends go through, and so does everything once the branch is dropped."""
    main, ingest = branched(tmp_path)
    for refused in (
        lambda: main.delete_prefix({"id1": "a"}),
        lambda: main.upsert(rows("a", [1])),
        lambda: main.delete(where="id2 = 1", mode="scan"),
        lambda: main.delete(where="id2 < 10", mode="scan"),
        lambda: main.overwrite(rows("z", [1])),
    ):
        with pytest.raises(InvalidArgumentError, match="accepts only appends"):
            refused()
    main.append(rows("b", [1]))
    ingest.refresh().delete_prefix({"id1": "a", "id2": 1})
    main.refresh().drop_branch("ingest")
    main.delete_prefix({"id1": "a", "id2": 2})
    assert live_tuples(main) == [*(row for row in TEN_ROWS if row[1] != 2), ("b", 1, "x")]


def test_drop_dead_deletes_on_a_publish_target_is_rejected(tmp_path: Path) -> None:
    """MT-30: publishing cannot carry a change that only removes delete files either."""
    main = keyed_table(tmp_path)
    main.append(rows("a", range(10)))
    main.delete_prefix({"id1": "a", "id2": 3})
    main.maintenance.compact(rewrite_all=True, drop_dead_deletes=False)
    main.create_branch("ingest")
    main.set_properties(**TARGET)
    before = main.refresh().snapshot_id
    with pytest.raises(InvalidArgumentError, match="accepts only appends"):
        main.maintenance.drop_dead_deletes()
    assert main.refresh().snapshot_id == before


def test_an_append_to_the_target_may_add_range_partitions(tmp_path: Path) -> None:
    """MT-30, RP-9: it is an append, even if its rows create ranges."""
    main = keyed_table(tmp_path)
    main.range_partitions.define(tf.RangePartitions(on=["id2"], bounds=[(0, 10)], step=10, on_demand=True))
    main.append(rows("a", [1]))
    main.create_branch("ingest")
    main.set_properties(**TARGET)
    main.append(rows("a", [25]))
    assert main.range_partitions.list()["partition"].to_pylist() == ["[0, 10)", "[20, 30)"]
    assert live_tuples(main) == [("a", 1, "x"), ("a", 25, "x")]


def test_concurrent_appends_and_writes_during_publishing(tmp_path: Path) -> None:
    """MT-33: another writer appends to the target and writes to the branch before each of the first commits: next
    round."""
    main, ingest = branched(tmp_path)
    ingest.delete_prefix({"id1": "a", "id2": 3})
    writer, other = opened(tmp_path), opened(tmp_path, "ingest")
    catalog = ingest.iceberg.catalog
    real, script = (
        catalog.commit_table,
        [
            lambda: writer.refresh().append(rows("m", [1])),
            lambda: writer.refresh().append(rows("m", [2])),
            lambda: other.refresh().delete_prefix({"id1": "m", "id2": 1}),
            lambda: other.refresh().upsert(rows("a", [5], "new")),
        ],
    )

    def interrupted(*arguments: Any) -> Any:
        if script:
            script.pop(0)()
        return real(*arguments)

    catalog.commit_table = interrupted
    result = ingest.maintenance.publish()
    assert script == []
    assert heads(main) == (result.snapshot_id, result.snapshot_id)
    expected = [("a", n, "new" if n == 5 else "x") for n in range(10) if n != 3] + [("m", 2, "x")]
    assert live_tuples(main) == read_by_pyiceberg(tmp_path) == expected


def before_each_commit(table: tf.Table, write: Callable[[int], object]) -> None:
    """Somebody else writes before every other commit of the table's catalog from now on."""
    catalog, numbers = table.iceberg.catalog, iter(range(10_000))
    real = catalog.commit_table

    def interrupted(*arguments: Any) -> Any:
        number = next(numbers)
        if number % 2 == 0:
            write(number)
        return real(*arguments)

    catalog.commit_table = interrupted


def test_publish_gives_up_with_permanent_writers_of_both_branches(tmp_path: Path) -> None:
    """MT-33: publishing gives up. The target shows the rows that others appended, and no equality or range delete."""
    main, ingest = branched(tmp_path)
    on_target, on_branch = opened(tmp_path), opened(tmp_path, "ingest")

    def write(number: int) -> None:
        on_branch.refresh().upsert(rows("w", [number]))
        on_target.refresh().append(rows("m", [number]))

    ingest.upsert(rows("a", [1], "new"))
    before_each_commit(ingest, write)
    with pytest.raises(CommitConflictError):
        ingest.maintenance.publish()
    assert read_by_pyiceberg(tmp_path)[:10] == TEN_ROWS
    assert live_delete_files(main.refresh()) == []


@pytest.mark.parametrize("version", ["2", "3"])
def test_target_advances_despite_a_permanent_branch_writer(tmp_path: Path, version: str) -> None:
    """LK-16: the target gets the state of the branch at the start of a round; later commits are published later. Rows
    that others append to the target are carried once, and newer deletes apply to them."""
    main, ingest = branched(tmp_path, properties={"format-version": version})
    writer = opened(tmp_path, "ingest")
    ingest.upsert(rows("a", [1], "new"))
    ingest.delete_prefix({"id1": "a", "id2": 2})
    before_each_commit(ingest, lambda number: writer.refresh().upsert(rows("w", [number % 20], str(number))))
    result = ingest.maintenance.publish()
    assert result.rounds == 4
    assert heads(main)[0] == result.snapshot_id != heads(main)[1]
    published = live_tuples(main)
    planned = main.metadata.snapshot_by_id(result.snapshot_id).parent_snapshot_id
    assert published == live_tuples(main, snapshot_id=planned)
    converted = [("a", number, "new" if number == 1 else "x") for number in range(10) if number != 2]
    assert published[:9] == converted
    assert len(published) > 9, "the writer's rows, up to the fourth round"
    assert not any(is_keyed(delete) for delete in live_delete_files(main))
    assert set(main.metadata.refs) == {"main", "ingest", "carried.ingest"}
    if version == "2":
        assert read_by_pyiceberg(tmp_path) == published
    main.append(rows("m", [1, 2]))
    writer.refresh().delete_prefix({"id1": "m", "id2": 2})
    assert ingest.maintenance.publish().carried_records_count == 2
    assert live_tuples(main.refresh())[-1][0] == "w"
    assert [row for row in live_tuples(main) if row[0] == "m"] == [("m", 1, "x")]
    main.maintenance.expire_snapshots(older_than="2100-01-01")
    for table in (main.refresh(), ingest.refresh()):
        assert table.verify(deep=True).errors == ()
    assert ingest.maintenance.publish(dry_run=True).carried_records_count == 0


def test_publish_rejects_branch_rolled_back_behind_the_target(tmp_path: Path) -> None:
    """LK-16, MT-32: the branch never had those rows, so on the target they do not count as an append to carry."""
    main, ingest = branched(tmp_path)
    start = heads(main)[1]
    writer = opened(tmp_path, "ingest")
    ingest.upsert(rows("a", [1], "new"))
    before_each_commit(ingest, lambda number: writer.refresh().upsert(rows("w", [number])))
    ingest.maintenance.publish()
    writer.refresh().rollback(snapshot_id=start)
    with pytest.raises(PublishRefusedError):
        writer.refresh().maintenance.publish()


def test_dry_run_reports_and_changes_nothing(tmp_path: Path) -> None:
    """MT-33"""
    main, ingest = branched(tmp_path)
    main.append(rows("late", [1, 2]))
    ingest.refresh().delete_prefix({"id1": "a", "id2": 3})
    before = heads(main)
    planned = main.maintenance.publish(dry_run=True)
    assert (planned.carried_data_files_count, planned.carried_records_count) == (1, 2)
    assert (planned.removed_range_delete_files_count, planned.converted_rows_count) == (1, 1)
    assert heads(main) == before


def test_invalid_arguments_are_rejected(tmp_path: Path) -> None:
    """MT-30"""
    main, _ = branched(tmp_path)
    main.create_branch("other")
    with pytest.raises(InvalidArgumentError, match="itself"):
        main.maintenance.publish("main", "main")
    with pytest.raises(InvalidArgumentError, match="published to 'main', not to 'other'"):
        main.maintenance.publish("ingest", "other")
    with pytest.raises(InvalidArgumentError, match="itself published"):
        main.maintenance.publish("other", "ingest")
    with pytest.raises(PublishRefusedError):
        main.maintenance.publish("nowhere")


def test_base_survives_expiry(tmp_path: Path) -> None:
    """MT-31, MT-1: the tag keeps the snapshot that shows what the target has received."""
    main, ingest = branched(tmp_path)
    main.maintenance.publish()
    ingest.refresh().upsert(rows("a", [1], "new"))
    main.append(rows("m", [1]))
    main.maintenance.publish()
    ingest.refresh().upsert(rows("a", [2], "new"))
    main.refresh().append(rows("m", [2]))
    ingest.refresh().append(rows("b", [1]))
    main.refresh().maintenance.expire_snapshots(older_than=10**15)
    result = main.maintenance.publish()
    assert result.carried_data_files_count == 1
    assert [row for row in live_tuples(main) if row[0] == "m"] == [("m", 1, "x"), ("m", 2, "x")]


def test_missing_target_and_target_without_common_history(tmp_path: Path) -> None:
    """MT-1, MT-32: expiry keeps nothing for it, and publishing reports why it does nothing."""
    main = keyed_table(tmp_path)
    main.create_branch("ingest").set_properties(**TARGET)
    ingest = opened(tmp_path, "ingest")
    ingest.append(rows("a", [1]))
    assert main.maintenance.expire_snapshots(older_than=10**15).expired_snapshots_count == 1
    with pytest.raises(PublishRefusedError):
        main.maintenance.publish()
    main.refresh().append(rows("m", [1]))
    assert main.maintenance.expire_snapshots(older_than=10**15).expired_snapshots_count == 0
    with pytest.raises(PublishRefusedError):
        main.maintenance.publish()
    assert (live_tuples(main.refresh()), live_tuples(ingest.refresh())) == ([("m", 1, "x")], [("a", 1, "x")])


def test_version_3_keeps_row_ids(tmp_path: Path) -> None:
    """FM-20, MT-31: a carried file brings its row ids along."""
    main, ingest = branched(tmp_path, properties={"format-version": "3"})
    main.append(rows("late", [1]))
    ids = first_row_ids(main)
    ingest.refresh().delete_prefix({"id1": "a", "id2": 3})
    main.maintenance.publish()
    after = first_row_ids(main.refresh())
    assert {path: after[path] for path in ids} == ids
    assert live_tuples(main) == [*(row for row in TEN_ROWS if row[1] != 3), ("late", 1, "x")]


def first_row_ids(table: tf.Table) -> dict[str, int | None]:
    found = table.inspect.data_files()
    return dict(zip(found["file_path"].to_pylist(), found["first_row_id"].to_pylist(), strict=True))
