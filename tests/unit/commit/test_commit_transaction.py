"""Commits to a real catalog: which changes land, which are retried, and which files are left when a commit fails."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import pytest
from commit_tables import (
    FaultyCatalog,
    append,
    committed,
    data_file,
    delete_blindly,
    equality_delete,
    live,
    metadata_files,
    new_table,
    planned,
    position_delete,
    range_delete,
    reachable_metadata_files,
    vector,
)
from pyiceberg.exceptions import BadRequestError, CommitFailedException, CommitStateUnknownException
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import AssertRefSnapshotId, SetSnapshotRefUpdate

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.outcome import CommitOutcome
from tableformat.commit.planned_change import FixedChange, PlannedChange, UpdatesAndRequirements
from tableformat.commit.transaction import commit_change
from tableformat.errors import (
    CommitConflictError,
    CommitExitError,
    CommitInterruptedError,
    CommitStateUnknownError,
    InvalidArgumentError,
    SnapshotNotFoundError,
    TableFormatError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.history.references import set_properties
from tableformat.properties import RANGE_PARTITIONS
from tableformat.testing.table_rows import live_values


@pytest.fixture
def table(catalog: FaultyCatalog) -> Table:
    return new_table(catalog)


def ids_at(outcome: CommitOutcome) -> list[int]:
    """Ids that PyIceberg's own reader sees in the snapshot of a commit."""
    return live_values(outcome.table, "id", snapshot_id=outcome.snapshot_id)


def set_branch(table: Table, name: str, **retention: int) -> Table:
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    update = SetSnapshotRefUpdate.model_validate(
        {"ref-name": name, "type": "branch", "snapshot-id": snapshot.snapshot_id, **retention}
    )
    table.catalog.commit_table(table, (), (update,))
    return table.catalog.load_table(table.name())


def test_every_committed_snapshot_is_read_by_pyiceberg(table: Table) -> None:
    first = commit_change(table, append(data_file(table, "a.parquet", [1, 2, 3])))
    second = commit_change(first.table, append(data_file(table, "b.parquet", [4])))
    change = planned(
        second.table,
        ChangeKind.ROW_DELTA,
        Operation.DELETE,
        added_delete_files=(position_delete(table, "d.parquet", data_file(table, "a.parquet"), [0, 2]),),
    )
    third = commit_change(second.table, change)
    change = planned(
        third.table,
        ChangeKind.SCAN_BASED,
        removed_data_files=(committed(third.table, "a.parquet"),),
        removed_delete_files=(committed(third.table, "d.parquet"),),
        added_data_files=(data_file(table, "c.parquet", [2, 9]),),
    )
    fourth = commit_change(third.table, change)
    assert [ids_at(outcome) for outcome in (first, second, third, fourth)] == [
        [1, 2, 3],
        [1, 2, 3, 4],
        [2, 4],
        [2, 4, 9],
    ]
    assert [outcome.sequence_number for outcome in (first, second, third, fourth)] == [1, 2, 3, 4]
    assert live(fourth.table) == {"b.parquet": 2, "c.parquet": 4}
    assert metadata_files(fourth.table) == reachable_metadata_files(fourth.table)


def test_files_of_one_commit_share_its_sequence_number(table: Table) -> None:
    """CP-2: new rows and the deletes of the rows that they replace have the same sequence number."""
    change = TableChange(
        operation=Operation.OVERWRITE,
        added_data_files=(data_file(table, "a.parquet"),),
        added_delete_files=(range_delete(table, "r.parquet"), equality_delete(table, "e.parquet")),
    )
    commit_change(table, append(data_file(table, "old.parquet")))
    outcome = commit_change(table, change)
    assert live(outcome.table) == {"old.parquet": 1, "a.parquet": 2, "r.parquet": 2, "e.parquet": 2}


def test_sequence_numbers_run_across_branches(table: Table) -> None:
    """CP-2: the next number follows the last one of the table, not of the ref."""
    table = commit_change(table, append(data_file(table, "a.parquet"))).table
    table = set_branch(table, "ingest", **{"min-snapshots-to-keep": 7})
    on_branch = commit_change(table, append(data_file(table, "b.parquet")), ref="ingest")
    on_main = commit_change(table, append(data_file(table, "c.parquet")))
    assert (on_branch.sequence_number, on_main.sequence_number) == (2, 3)
    assert live(on_main.table, "ingest") == {"a.parquet": 1, "b.parquet": 2}
    assert live(on_main.table) == {"a.parquet": 1, "c.parquet": 3}
    assert on_main.metadata.refs["ingest"].min_snapshots_to_keep == 7


def test_empty_change_is_not_committed(table: Table) -> None:
    """CP-17."""
    nothing = TableChange(operation=Operation.APPEND)
    empty = commit_change(table, nothing)
    assert (empty.snapshot_id, empty.committed, empty.metadata.snapshots) == (None, False, [])
    first = commit_change(table, append(data_file(table, "a.parquet")))
    again = commit_change(table, nothing, application_id="app", batch_id=1)
    assert (again.snapshot_id, again.sequence_number, again.committed) == (first.snapshot_id, 1, False)
    assert again.metadata_location == first.metadata_location


def test_blind_write_is_retried_after_concurrent_commit(table: Table, catalog: FaultyCatalog) -> None:
    """CP-1 makes the first attempt fail, CP-3 lets a blind change retry."""

    def interfere() -> None:
        catalog.before = None
        commit_change(table, append(data_file(table, "theirs.parquet")))

    catalog.before = interfere
    outcome = commit_change(table, append(data_file(table, "ours.parquet")))
    assert (outcome.attempts, outcome.sequence_number) == (2, 2)
    assert live(outcome.table) == {"theirs.parquet": 1, "ours.parquet": 2}
    assert metadata_files(outcome.table) == reachable_metadata_files(outcome.table)


def test_planned_change_is_replanned_on_the_new_head(table: Table, catalog: FaultyCatalog) -> None:
    heads: list[tuple[int, int]] = []

    def interfere() -> None:
        catalog.before = None
        commit_change(table, append(data_file(table, "theirs.parquet")))

    class Planned(PlannedChange):
        def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
            heads.append((attempt, head.sequence_number))
            return append(data_file(table, f"ours-{attempt}.parquet"))

    catalog.before = interfere
    outcome = commit_change(table, Planned())
    assert heads == [(1, 0), (2, 1)]
    assert live(outcome.table) == {"theirs.parquet": 1, "ours-2.parquet": 2}
    assert outcome.change is not None
    assert outcome.change.added_data_files[0].file_path.endswith("ours-2.parquet")


def test_sequence_number_taken_by_another_branch_is_a_lost_race(table: Table, catalog: FaultyCatalog) -> None:
    """CP-2: the head of our branch did not move, yet the snapshot's number is taken."""
    table = commit_change(table, append(data_file(table, "a.parquet"))).table
    table = set_branch(table, "ingest")

    def interfere() -> None:
        catalog.before = None
        commit_change(table, append(data_file(table, "b.parquet")), ref="ingest")

    catalog.before = interfere
    outcome = commit_change(table, append(data_file(table, "c.parquet")))
    assert (outcome.attempts, outcome.sequence_number) == (2, 3)


def append_twenty(directory: str, writer: int) -> None:
    table = EmbeddedCatalog.at(directory).load_table("db.t")
    for number in range(20):
        commit_change(table, append(data_file(table, f"{writer}-{number}.parquet")))


@pytest.mark.parametrize(
    "start", [threading.Thread, pytest.param(multiprocessing.get_context("spawn").Process, marks=pytest.mark.slow)]
)
def test_concurrent_appends_of_two_writers_are_all_kept(
    table: Table, tmp_path: Path, start: type[threading.Thread]
) -> None:
    """CP-1, CP-3: two writers, twenty appends each, one SQLite file."""
    writers = [start(target=append_twenty, args=(str(tmp_path / "lake"), writer)) for writer in (1, 2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    table = table.refresh()
    files = live(table)
    assert set(files) == {f"{writer}-{number}.parquet" for writer in (1, 2) for number in range(20)}
    assert sorted(number or 0 for number in files.values()) == list(range(1, 41))
    summary = table.metadata.current_snapshot()
    assert summary is not None
    assert summary.summary is not None
    assert summary.summary["total-data-files"] == "40"


def test_repeatedly_lost_race_is_a_conflict_and_leaves_no_file(table: Table, catalog: FaultyCatalog) -> None:
    """CP-18."""
    table = commit_change(table, append(data_file(table, "a.parquet"))).table
    files = metadata_files(table)

    def lose() -> None:
        raise CommitFailedException("someone was faster")

    catalog.before = lose
    with pytest.raises(CommitConflictError):
        commit_change(table, append(data_file(table, "b.parquet")))
    assert metadata_files(table) == files
    assert live(table.refresh()) == {"a.parquet": 1}


def test_retries_can_be_disabled(table: Table, catalog: FaultyCatalog) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({"commit.retry.num-retries": "0"})

    def lose() -> None:
        raise CommitFailedException("someone was faster")

    catalog.before = lose
    with pytest.raises(CommitConflictError):
        commit_change(table, append(data_file(table, "b.parquet")))


def test_lost_response_after_commit_is_a_success(table: Table, catalog: FaultyCatalog) -> None:
    """CP-13: the table shows the snapshot."""

    def hang_up() -> None:
        raise ConnectionError("connection reset by peer")

    catalog.after = hang_up
    outcome = commit_change(table, append(data_file(table, "a.parquet")))
    assert outcome.committed
    assert live(outcome.table) == {"a.parquet": 1}
    assert outcome.snapshot_id == outcome.metadata.current_snapshot_id


def test_stale_replica_response_does_not_remove_files(
    table: Table, catalog: FaultyCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP-18: as of a replica that lags behind."""
    commit_table = catalog.commit_table

    def answer_late(*request: object) -> object:
        answer = commit_table(*request)  # type: ignore[arg-type]
        return answer.model_copy(update={"metadata": table.metadata})

    monkeypatch.setattr(catalog, "commit_table", answer_late)
    assert commit_change(table, append(data_file(table, "a.parquet", [7]))).committed
    table = table.refresh()
    assert table.scan().to_arrow()["id"].to_pylist() == [7]
    assert metadata_files(table) == reachable_metadata_files(table)


def test_repeated_request_of_applied_commit_is_a_success(table: Table, catalog: FaultyCatalog) -> None:
    """CP-13: a proxy sent the request twice; the second answer is a conflict with ourselves."""

    def conflict() -> None:
        raise CommitFailedException("requirement failed: main has changed")

    catalog.after = conflict
    outcome = commit_change(table, append(data_file(table, "a.parquet")))
    assert outcome.committed
    assert live(outcome.table) == {"a.parquet": 1}
    assert metadata_files(outcome.table) == reachable_metadata_files(outcome.table)


@pytest.mark.parametrize(
    "error", [CommitStateUnknownException("bad gateway"), ConnectionError("reset"), ValueError("?")]
)
def test_unknown_outcome_keeps_the_files(table: Table, catalog: FaultyCatalog, error: Exception) -> None:
    """CP-13: the request is in transit and is applied after this library has given up."""
    sent: list[tuple[object, ...]] = []
    commit_table = EmbeddedCatalog.commit_table

    def swallow(self: EmbeddedCatalog, *request: object) -> None:
        sent.append(request)
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddedCatalog, "commit_table", swallow)
        with pytest.raises(CommitStateUnknownError):
            commit_change(table, append(data_file(table, "a.parquet", [7])))
    commit_table(catalog, *sent[0])  # type: ignore[arg-type]
    table = table.refresh()
    assert table.scan().to_arrow()["id"].to_pylist() == [7]
    assert metadata_files(table) == reachable_metadata_files(table)


def test_interrupt_during_the_catalog_call_keeps_the_files(table: Table, catalog: FaultyCatalog) -> None:
    """CP-13: a process that is interrupted does not know either."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    catalog.after = interrupt
    with pytest.raises(CommitInterruptedError) as interrupted:
        commit_change(table, append(data_file(table, "a.parquet", [7])))
    # Both classes: code that ends on Ctrl-C still ends, and code that removes staged files of failed commits keeps
    # these.
    assert isinstance(interrupted.value, KeyboardInterrupt)
    assert isinstance(interrupted.value, CommitStateUnknownError)
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [7]


def test_system_exit_during_catalog_call_keeps_files_and_exit_code(table: Table, catalog: FaultyCatalog) -> None:
    """CP-13, CP-51: an exit stays an exit with its exit code; only Ctrl-C is raised as an interrupt."""

    def end() -> None:
        raise SystemExit(3)

    catalog.after = end
    with pytest.raises(CommitExitError) as ended:
        commit_change(table, append(data_file(table, "a.parquet", [7])))
    assert not isinstance(ended.value, KeyboardInterrupt)
    assert ended.value.code == 3
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [7]


def test_commit_keeps_the_branch_settings(table: Table, catalog: FaultyCatalog) -> None:
    """MT-1: by them its snapshots expire."""
    head = commit_change(table, append(data_file(table, "a.parquet"))).table
    settings = {"max-ref-age-ms": 10, "max-snapshot-age-ms": 20, "min-snapshots-to-keep": 30}
    ref = {"ref-name": "b", "type": "branch", "snapshot-id": head.metadata.current_snapshot_id, **settings}
    catalog.commit_table(head, (), (SetSnapshotRefUpdate.model_validate(ref),))
    after = commit_change(table, append(data_file(table, "b.parquet")), ref="b").metadata.refs["b"]
    assert (after.max_ref_age_ms, after.max_snapshot_age_ms, after.min_snapshots_to_keep) == (10, 20, 30)


def test_unknown_range_partition_version_rejects_added_rows(catalog: FaultyCatalog) -> None:
    """RP-1: regardless of the operation that staged the rows. Changes without rows are committed."""
    table = new_table(catalog, properties={RANGE_PARTITIONS: '{"version": 99}'})
    with pytest.raises(UnsupportedFeatureError, match="newer version"):
        commit_change(table, append(data_file(table, "a.parquet")))
    assert commit_change(table, delete_blindly(equality_delete(table, "e.parquet"))).committed


def test_interrupt_before_the_request_leaves_no_file(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-18."""
    files = metadata_files(table)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tableformat.commit.snapshot_producer.write_manifest_list", interrupt)
    with pytest.raises(KeyboardInterrupt):
        commit_change(table, append(data_file(table, "a.parquet")))
    assert metadata_files(table) == files


@pytest.mark.parametrize("version", ["2", "3"])
def test_refused_commit_leaves_no_file(table: Table, catalog: FaultyCatalog, version: str) -> None:
    """CP-18: a clear refusal is not an unknown outcome, and the request is not repeated."""
    table = catalog.create_table("db.v", table.schema(), properties={"format-version": version})
    files = metadata_files(table)
    asked: list[None] = []

    def refuse() -> None:
        asked.append(None)
        raise BadRequestError("no such thing")

    catalog.before = refuse
    with pytest.raises(TableFormatError, match=r"refused the commit to db\.v .*: no such thing"):
        commit_change(table, append(data_file(table, "a.parquet")))
    assert metadata_files(table) == files
    assert len(asked) == 1


def test_commit_to_recreated_table_is_rejected(table: Table, catalog: FaultyCatalog) -> None:
    """CP-1."""
    catalog.drop_table("db.t")
    with pytest.raises(TableNotFoundError):
        commit_change(table, append(data_file(table, "a.parquet")))
    catalog.create_table("db.t", table.schema())
    with pytest.raises(TableNotFoundError):
        commit_change(table, append(data_file(table, "a.parquet")))


def test_commit_to_unknown_branch_raises_error(table: Table) -> None:
    with pytest.raises(SnapshotNotFoundError):
        commit_change(table, append(data_file(table, "a.parquet")), ref="ingest")


def test_two_refs_move_in_one_commit(table: Table) -> None:
    first = commit_change(table, append(data_file(table, "a.parquet")))
    table = set_branch(first.table, "ingest")

    class Published(FixedChange):
        def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
            assert head.snapshot is not None
            move = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot.snapshot_id}
            unmoved = {"ref": "main", "snapshot-id": first.snapshot_id}
            return [SetSnapshotRefUpdate.model_validate(move)], [AssertRefSnapshotId.model_validate(unmoved)]

    outcome = commit_change(table, Published(append(data_file(table, "b.parquet"))), ref="ingest")
    assert live(outcome.table) == live(outcome.table, "ingest") == {"a.parquet": 1, "b.parquet": 2}
    # If a change has two requirements of one type, the second one is checked too: main has moved in the meantime.
    with table.transaction() as transaction:
        transaction.set_properties({"commit.retry.num-retries": "1"})
    with pytest.raises(CommitConflictError):
        commit_change(table, Published(append(data_file(table, "c.parquet"))), ref="ingest")


@pytest.mark.parametrize(
    "name", ["total-records", "added-x", "removed-x", "deleted-x", "operation", "changed-partition-count"]
)
def test_reserved_summary_names_are_rejected(table: Table, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"cannot set '{name}'"):
        commit_change(table, append(data_file(table, "a.parquet")), snapshot_properties={name: "1"})


def test_snapshot_properties_are_in_the_summary(table: Table) -> None:
    outcome = commit_change(table, append(data_file(table, "a.parquet")), snapshot_properties={"job": "nightly"})
    snapshot = outcome.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["job"] == "nightly"


def test_format_versions_accept_only_supported_delete_files(table: Table, catalog: FaultyCatalog) -> None:
    target = data_file(table, "a.parquet")
    table = commit_change(table, append(target)).table
    change = planned(table, ChangeKind.ROW_DELTA, added_delete_files=(vector(table, "v.puffin", target),))
    with pytest.raises(UnsupportedFeatureError, match="version 2, which has no deletion vectors"):
        commit_change(table, change)
    v3 = catalog.create_table("db.v3", table.schema(), properties={"format-version": "3"})
    v3 = commit_change(v3, append(data_file(v3, "a.parquet", [1, 2]))).table
    change = planned(v3, ChangeKind.ROW_DELTA, added_delete_files=(position_delete(v3, "d.parquet", target, [0]),))
    with pytest.raises(UnsupportedFeatureError, match="does not accept new position delete files"):
        commit_change(v3, change)
    v1 = catalog.create_table("db.v1", table.schema(), properties={"format-version": "1"})
    with pytest.raises(UnsupportedFeatureError, match="format version 1, which is read-only"):
        commit_change(v1, append(data_file(v1, "a.parquet")))


def test_appends_to_a_v3_table_assign_row_ids(catalog: FaultyCatalog, table: Table) -> None:
    v3 = catalog.create_table("db.v3", table.schema(), properties={"format-version": "3"})
    first = commit_change(v3, append(data_file(v3, "a.parquet", [1, 2])))
    second = commit_change(first.table, append(data_file(v3, "b.parquet", [3])))
    lineage = [(snapshot.first_row_id, snapshot.added_rows) for snapshot in second.metadata.snapshots]
    assert lineage == [(0, 2), (2, 1)]
    assert second.metadata.next_row_id == 3  # type: ignore[union-attr]
    assert committed(second.table, "b.parquet").first_row_id == 2
    assert ids_at(second) == [1, 2, 3]


def test_sequence_number_taken_by_one_commit_is_a_lost_race(table: Table, catalog: FaultyCatalog) -> None:
    """CP-13: the catalog gave a plain error, and the number of the attempt is the table's last one."""

    def interfere() -> None:
        catalog.before = None
        commit_change(catalog.load_table("db.t"), append(data_file(table, "theirs.parquet")))
        raise OSError("no answer")

    catalog.before = interfere
    outcome = commit_change(table, append(data_file(table, "ours.parquet")))
    assert (outcome.committed, outcome.attempts, outcome.sequence_number) == (True, 2, 2)
    assert live(outcome.table) == {"theirs.parquet": 1, "ours.parquet": 2}


def test_commit_status_check_is_retried(table: Table, catalog: FaultyCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-13: `commit.status-check.num-retries` sets the number of checks; a commit that is found then is a success."""
    load_table, looks = catalog.load_table, []

    def lose_the_answer() -> None:
        catalog.after = None
        monkeypatch.setattr(catalog, "load_table", away_twice)
        raise OSError("no answer")

    def away_twice(identifier: str) -> Table:
        looks.append(identifier)
        if len(looks) < 3:
            raise OSError("away")
        return load_table(identifier)

    catalog.after = lose_the_answer
    outcome = commit_change(table, append(data_file(table, "a.parquet")))
    assert (outcome.committed, outcome.attempts, len(looks)) == (True, 1, 3)


@pytest.mark.parametrize(
    "answer", [BadRequestError("first-row-id is missing"), None], ids=["refused", "looked at here"]
)
def test_table_upgraded_during_the_commit_is_a_lost_race(
    table: Table, catalog: FaultyCatalog, answer: Exception | None
) -> None:
    """CP-13: a server that cannot store a snapshot without row ids rejects it."""

    def interfere() -> None:
        catalog.before = None
        set_properties(catalog.load_table("db.t"), {"format-version": "3"})
        if answer is not None:
            raise answer

    catalog.before = interfere
    outcome = commit_change(table, append(data_file(table, "a.parquet", [1, 2])))
    assert (outcome.committed, outcome.attempts) == (True, 2)
    assert committed(outcome.table, "a.parquet").first_row_id == 0
