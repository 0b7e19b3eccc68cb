"""CP-14: each batch of a named writer is committed once."""

from __future__ import annotations

from pathlib import Path

import pytest
from commit_tables import FaultyCatalog, append, data_file, live, new_table
from pyiceberg.table import Table

from tableformat.commit.idempotence import (
    AppliedBatch,
    BatchName,
    applied_batch,
    batch_name,
    batches_of_snapshots,
    is_applied,
    property_name,
    remember_batch,
    remembered_batches,
)
from tableformat.commit.transaction import commit_change
from tableformat.errors import InvalidArgumentError


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return new_table(FaultyCatalog.at(tmp_path / "lake"))


def test_repeated_batch_is_committed_once(table: Table) -> None:
    """CP-14."""
    first = commit_change(table, append(data_file(table, "a.parquet")), application_id="app", batch_id=7)
    # The handle is the old one, as in a job that restarted from a checkpoint.
    again = commit_change(table, append(data_file(table, "again.parquet")), application_id="app", batch_id=7)
    assert (again.already_applied, again.committed) == (True, False)
    assert (again.snapshot_id, again.sequence_number) == (first.snapshot_id, 1)
    assert live(again.table) == {"a.parquet": 1}


def test_older_numbered_batch_counts_as_applied(table: Table) -> None:
    """CP-14: a batch with the stored number or a lower one counts as applied, regardless of the type of the number."""
    table = commit_change(table, append(data_file(table, "a.parquet")), application_id="app", batch_id=7).table
    assert commit_change(
        table, append(data_file(table, "b.parquet")), application_id="app", batch_id="6"
    ).already_applied
    assert commit_change(table, append(data_file(table, "b.parquet")), application_id="app", batch_id="10").committed


def test_batch_records_are_per_writer_and_branch(table: Table) -> None:
    table = commit_change(table, append(data_file(table, "a.parquet")), application_id="app", batch_id=7).table
    assert commit_change(table, append(data_file(table, "b.parquet")), application_id="app2", batch_id=7).committed


def test_batch_committed_concurrently_is_detected(table: Table) -> None:
    """CP-14: the record is read again at every attempt."""
    catalog = table.catalog
    assert isinstance(catalog, FaultyCatalog)

    def interfere() -> None:
        catalog.before = None
        commit_change(table, append(data_file(table, "theirs.parquet")), application_id="app", batch_id=7)

    catalog.before = interfere
    outcome = commit_change(table, append(data_file(table, "ours.parquet")), application_id="app", batch_id=7)
    assert (outcome.already_applied, outcome.attempts) == (True, 2)
    assert live(outcome.table) == {"theirs.parquet": 1}


def test_batch_record_survives_snapshot_expiry(table: Table) -> None:
    """CP-14."""
    first = commit_change(table, append(data_file(table, "a.parquet")), application_id="app", batch_id="x")
    second = commit_change(first.table, append(data_file(table, "b.parquet")))
    assert first.snapshot_id is not None
    second.table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    again = commit_change(table, append(data_file(table, "a.parquet")), application_id="app", batch_id="x")
    assert (again.already_applied, again.snapshot_id, again.sequence_number) == (True, first.snapshot_id, None)


@pytest.mark.parametrize(
    ("stored", "batch_id", "applied"),
    [
        (7, 7, True),
        (7, 6, True),
        (7, 8, False),
        ("7", 10, False),
        ("10", "9", True),
        (-1, "-2", True),
        ("x", "x", True),
        ("x", "y", False),
        (7, "x", False),
        ("x", 7, False),
        ("", "0", False),
    ],
)
def test_applied_ids_are_compared_as_numbers_or_text(stored: int | str, batch_id: int | str, applied: bool) -> None:
    """CP-14: whole numbers rise, anything else is equal or not."""
    assert is_applied(AppliedBatch(stored, 1, 1), batch_id) is applied


def test_names_of_rolled_back_snapshots() -> None:
    properties = remember_batch("main", BatchName("one", 1), 11, 0) | remember_batch(
        "main", BatchName("two", "x"), 12, 0
    )
    assert batches_of_snapshots(properties, "main", {12, 13}) == [property_name("main", "two")]
    assert batches_of_snapshots(properties, "ingest", {11, 12}) == []


@pytest.mark.parametrize(
    ("application_id", "batch_id", "message"),
    [
        (None, 1, "batch_id needs application_id"),
        ("", 1, "batch_id needs application_id"),
        ("app", None, "'app' needs batch_id"),
        ("app", True, "not True"),
        ("app", 1.5, "not 1.5"),
        ("app", "", "not ''"),
    ],
)
def test_application_id_requires_batch_id(table: Table, application_id: object, batch_id: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        commit_change(
            table,
            append(data_file(table, "a.parquet")),
            application_id=application_id,  # type: ignore[arg-type]
            batch_id=batch_id,  # type: ignore[arg-type]
        )
    assert batch_name(None, None) is None


@pytest.mark.parametrize("text", ["", "7", "{}", '{"batch-id": [], "snapshot-id": 1, "time-ms": 1}', "null"])
def test_invalid_batch_record_raises_error(text: str) -> None:
    name = property_name("main", "app")
    with pytest.raises(InvalidArgumentError, match=r"tableformat\.txn\.main\.app.* not a valid batch record"):
        applied_batch({name: text}, "main", "app")


def test_batch_record_names_follow_the_specification() -> None:
    """CP-14: no two pairs of a branch and a writer have one name, and other programs know how it is made."""
    assert property_name("a.b/c-d_e f", "app.1/ä#?") == "tableformat.txn.a%2Eb/c-d_e%20f.app.1/%C3%A4%23%3F"
    assert property_name("a", "b.c") != property_name("a.b", "c")
    record = remember_batch("a.b", BatchName("app.1/ä", 7), 5, 6)
    assert remembered_batches(record, "a.b") == {"app.1/ä": AppliedBatch(7, 5, 6)}
    assert remembered_batches(record, "a") == {}
