"""CHECK constraints that were added after a snapshot: publishing the snapshot, and restoring a range (CK-10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from long_forms import every
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import CommitConflictError, InvalidArgumentError, UnsupportedFeatureError
from tableformat.operations.history import cherrypick as cherrypick_module
from tableformat.operations.history.cherrypick import cherrypick
from tableformat.operations.history.held_checks import refuse_rows_that_break_checks
from tableformat.operations.ranges.dropped import live_data_files
from tableformat.storage.location import local_path
from tableformat.testing.replacing import replaced
from tableformat.testing.table_rows import live_values
from tableformat.write.rows.checks import row_checks

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64(), nullable=False)])


RANGES = tf.RangePartitions(on=["n"], bounds=[(-10, 0), (0, 10)])


OF_SPARK = {"tableformat.check.spark": "abs(n) < 7"}


@pytest.fixture(params=every(2, ["3", "2"]))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tf.Table]:
    with new_lake(tmp_path / "lake") as catalog:
        properties = {"format-version": request.param}
        table = catalog.create_table("db.t", SCHEMA, key=["id"], range_partitions=RANGES, properties=properties)
        table.append(rows((1, 1)))
        yield table


def rows(*pairs: tuple[int, int]) -> pa.Table:
    return pa.Table.from_pylist([{"id": id, "n": n} for id, n in pairs], schema=SCHEMA)


def staged(table: tf.Table, verb: Callable[[tf.Table], object]) -> int:
    """The snapshot of a branch that is dropped again."""
    table.create_branch("staging")
    assert table.catalog is not None
    branch = table.catalog.load_table("db.t", branch="staging")
    assert isinstance(branch, tf.Table)
    verb(branch)
    assert branch.snapshot_id is not None
    table.refresh().drop_branch("staging")
    return branch.snapshot_id


@pytest.mark.parametrize("is_behind", [True, False])
@pytest.mark.parametrize("verb", ["append", "upsert"])
def test_cherry_picked_row_violating_current_constraint_is_rejected(
    table: tf.Table, verb: str, is_behind: bool
) -> None:
    """CK-10: as an append, and if the branch would only be moved."""
    bad = staged(table, lambda branch: getattr(branch, verb)(rows((2, -5))))
    good = staged(table, lambda branch: branch.append(rows((3, 5))))
    table.add_check("positive", "n >= 0")
    if is_behind:
        table.append(rows((4, 4)))
    before = live_values(table, "n")
    told = "violate the CHECK constraint 'positive'" if verb == "append" or not is_behind else "cannot be cherry-picked"
    with pytest.raises(InvalidArgumentError, match=told):
        cherrypick(table.iceberg, "main", bad)
    assert live_values(table.refresh(), "n") == before
    cherrypick(table.iceberg, "main", good)
    assert live_values(table.refresh(), "n") == sorted([*before, 5])


def test_rows_are_checked_if_logged_metadata_was_removed(table: tf.Table) -> None:
    """CK-10: removed metadata files do not show the earlier constraints."""
    bad = staged(table, lambda branch: branch.append(rows((2, -5))))
    good = staged(table, lambda branch: branch.append(rows((3, 5))))
    table.add_check("positive", "n >= 0")
    for entry in table.metadata.metadata_log:
        path = local_path(entry.metadata_file)
        assert path is not None
        Path(path).unlink()
    with pytest.raises(InvalidArgumentError, match="violate the CHECK constraint 'positive'"):
        cherrypick(table.iceberg, "main", bad)
    cherrypick(table.iceberg, "main", good)
    assert live_values(table.refresh(), "n") == [1, 5]


@pytest.mark.parametrize("is_logged", [True, False])
def test_rows_are_checked_if_metadata_log_is_insufficient(table: tf.Table, is_logged: bool) -> None:
    """CK-10: if the clock of a writer is behind, and if the metadata log is missing."""
    bad = staged(table, lambda branch: branch.append(rows((2, -5))))
    table.add_check("positive", "n >= 0")
    log = [
        entry.model_copy(update={"timestamp_ms": entry.timestamp_ms - 30_000}) for entry in table.metadata.metadata_log
    ]
    metadata = table.metadata.model_copy(update={"metadata_log": log if is_logged else []})
    made_in = table.at(snapshot_id=bad)
    files = [data for data in live_data_files(made_in) if data.record_count]
    assert made_in.snapshot is not None
    with pytest.raises(InvalidArgumentError, match="violate the CHECK constraint 'positive'"):
        refuse_rows_that_break_checks(made_in, files, metadata, since=made_in.snapshot, table="db.t")


def test_restored_row_violating_current_constraint_is_rejected(table: tf.Table) -> None:
    """CK-10: rows that were deleted before the range was retired are not restored."""
    table.append(rows((2, -5), (3, -3)))
    tags = [table.range_partitions.retire(-10, 0).tag]
    table.add_check("few", "n > -5")
    assert tags[0] is not None
    with pytest.raises(InvalidArgumentError, match="violate the CHECK constraint 'few'"):
        table.range_partitions.restore(tags[0])
    table.drop_check("few")
    table.range_partitions.restore(tags[0])
    table.delete("n = -5", mode="scan")
    again = table.range_partitions.retire(-10, 0).tag
    table.add_check("few", "n > -5")
    assert again is not None
    table.range_partitions.restore(again)
    assert live_values(table, "n") == [-3, 1]


def test_later_spark_only_constraints_reject_old_rows(table: tf.Table) -> None:
    """CK-10: the metadata of that time shows its constraints; this library cannot check rows against constraints of
    Spark."""
    before = staged(table, lambda branch: branch.append(rows((2, 2))))
    with table.iceberg.transaction() as transaction:
        transaction.set_properties({"tableformat.check.spark": "abs(n) < 7"})
    with replaced(row_checks, lambda *_, **__: ()):
        behind = staged(table.refresh(), lambda branch: branch.append(rows((3, 3))))
    table.set_properties({"read.split.target-size": "1"})
    with pytest.raises(UnsupportedFeatureError, match=r"'spark'.*is enforced only by Spark"):
        cherrypick(table.iceberg, "main", before)
    cherrypick(table.iceberg, "main", behind)
    assert live_values(table.refresh(), "n") == [1, 3]


def test_concurrently_added_constraint_conflicts(table: tf.Table) -> None:
    """CK-3: between the look at the rows and the move of the branch."""
    bad = staged(table, lambda branch: branch.append(rows((2, -5))))
    move = cherrypick_module.move_to_child
    assert table.catalog is not None
    other = table.catalog.load_table("db.t")
    assert isinstance(other, tf.Table)

    def late(*arguments: object) -> None:
        other.add_check("positive", "n >= 0")
        move(*arguments)  # type: ignore[arg-type]

    with replaced(move, late), pytest.raises(CommitConflictError):
        cherrypick(table.iceberg, "main", bad)
    assert live_values(table.refresh(), "n") == [1]
