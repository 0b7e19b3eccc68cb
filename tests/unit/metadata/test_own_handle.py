"""Calls of several threads on one handle: the handle only moves forward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.commit import transaction
from tableformat.metadata.own_handle import calls_on_own_handles, own_handle
from tableformat.testing.replacing import replaced

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = tf.open_catalog(tmp_path / "lake")
    catalog.create_namespace("db")
    return catalog.create_table("db.t", SCHEMA, key=["id"])


def other(table: tf.Table) -> tf.Table:
    assert table.catalog is not None
    return table.catalog.load_table(table.name)  # type: ignore[return-value]


def test_call_that_ends_late_does_not_move_the_handle_back(table: tf.Table) -> None:
    """CP-61: the snapshot of the second call was not to be seen until the next refresh."""
    writer = other(table)
    with own_handle(table.iceberg) as late:
        writer.append([{"id": 1}])
        late.refresh()
        with own_handle(table.iceberg) as second:
            newest = writer.append([{"id": 2}]).snapshot_id
            second.refresh()
    assert table.snapshot_id == newest
    assert table.scan().count() == 2


def test_verb_that_is_told_late_of_its_commit_does_not_move_the_handle_back(table: tf.Table) -> None:
    """CP-61: a thread that stopped between the catalog's answer and the end of its operation used to hide the rows of
    another operation from both."""
    commit_change, waiting = transaction.commit_change, [[{"id": 2}]]

    def commit(*arguments: Any, **options: Any) -> Any:
        outcome = commit_change(*arguments, **options)
        if waiting:
            table.append(waiting.pop())
        return outcome

    with replaced(commit_change, commit):
        table.append([{"id": 1}])
    assert table.scan().count() == 2


def test_call_without_a_snapshot_does_not_move_the_handle_back(table: tf.Table) -> None:
    """CP-61: sequence numbers are the same; the metadata log shows which version is earlier."""
    writer = other(table)
    with own_handle(table.iceberg) as late:
        writer.set_properties(owner="first")
        late.refresh()
        with own_handle(table.iceberg) as second:
            writer.set_properties(owner="second")
            second.refresh()
    assert table.properties["owner"] == "second"


def test_earlier_version_that_fell_out_of_the_log_is_told_by_its_sequence_number(table: tf.Table) -> None:
    """CP-61"""
    table.set_properties({"write.metadata.previous-versions-max": "1"})
    writer = other(table)
    with own_handle(table.iceberg) as late:
        writer.append([{"id": 1}])
        late.refresh()
        for number in range(4):
            writer.append([{"id": number}])
        table.refresh()
    assert table.scan().count() == 5


def test_handle_follows_a_call_that_failed(table: tf.Table) -> None:
    """CP-61: an operation that gives up has loaded the newest version."""
    other(table).append([{"id": 1}])
    with pytest.raises(RuntimeError, match="half way"), own_handle(table.iceberg) as own:  # noqa: PT012
        own.refresh()
        raise RuntimeError("half way")
    assert table.scan().count() == 1


def test_handle_alone_goes_where_the_catalog_is(table: tf.Table) -> None:
    """CP-61: an earlier version was registered, and no other thread uses the handle."""
    location = table.iceberg.metadata_location
    other(table).append([{"id": 1}])
    assert table.refresh().scan().count() == 1
    assert table.catalog is not None
    table.catalog.iceberg.drop_table(table.iceberg.name())
    table.catalog.iceberg.register_table(table.iceberg.name(), location)
    assert table.refresh().scan().count() == 0


def test_call_is_not_moved_by_another(table: tf.Table) -> None:
    """CP-61"""
    with own_handle(table.iceberg) as own:
        before = own.metadata
        table.append([{"id": 1}])
        assert own.metadata is before
    assert table.scan().count() == 1


def test_jobs_of_a_class_run_on_a_copy(table: tf.Table) -> None:
    @calls_on_own_handles("handle")
    class Jobs:
        def __init__(self) -> None:
            self.handle = table.iceberg

        def run(self, times: int, *, by: int = 1) -> tuple[int, bool]:
            return times * by, self.handle is table.iceberg

        def _run(self) -> bool:
            return self.handle is table.iceberg

    assert Jobs().run(2, by=3) == (6, False)
    assert Jobs()._run()
