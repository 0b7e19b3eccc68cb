"""`write.delete.blind`: the table owner decides which delete files blind deletes may write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from long_forms import every
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.content_file import DeleteKind
from tableformat.operations.ranges.dropped import live_delete_files
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def rows_of(*ids: int, v: str = "old") -> pa.Table:
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, schema=SCHEMA)


def _in_one(table: tf.Table) -> None:
    with table.transaction() as together:
        together.upsert(rows_of(2, 7))
        together.delete_prefix({"id": 2})
        together.replace_interval(rows_of(3), on="id", lower=3, upper=5)


VERBS: dict[str, tuple[Callable[[tf.Table], Any], list[int]]] = {
    "delete": (lambda table: table.delete("id = 2"), [1, 3, 4, 5, 6]),
    "delete an interval": (lambda table: table.delete("id >= 2 AND id < 5"), [1, 5, 6]),
    "delete_prefix": (lambda table: table.delete_prefix({"id": 2}), [1, 3, 4, 5, 6]),
    "delete_range": (lambda table: table.delete_range(lower=(2,), upper=(5,)), [1, 5, 6]),
    "delete_rows": (lambda table: table.delete_rows(pa.table({"id": [2, 5]})), [1, 3, 4, 6]),
    "upsert": (lambda table: table.upsert(rows_of(2, 7)), [1, 2, 3, 4, 5, 6, 7]),
    "replace": (lambda table: table.replace(rows_of(2, 7)), [1, 2, 3, 4, 5, 6, 7]),
    "replace_interval": (
        lambda table: table.replace_interval(rows_of(3), on="id", lower=2, upper=5),
        [1, 3, 5, 6],
    ),
    "apply_changes": (
        lambda table: table.apply_changes(pa.table({"id": [2, 7], "v": ["x", "y"], "_op": ["D", "I"], "_ts": [1, 1]})),
        [1, 3, 4, 5, 6, 7],
    ),
    "overwrite": (
        lambda table: table.overwrite(rows_of(9), where="id > 2 AND id < 6", allow_outside=True),
        [1, 2, 6, 9],
    ),
    "a transaction": (_in_one, [1, 3, 5, 6, 7]),
}


@pytest.fixture(params=every(2, ["3", "2"]))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    """Ids 1 to 6 in two files."""
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table("db.t", SCHEMA, key=["id"], properties={"format-version": request.param})
    created.append(rows_of(1, 2, 3))
    created.append(rows_of(4, 5, 6))
    return created


def kinds(table: tf.Table) -> set[DeleteKind]:
    return {delete.kind for delete in live_delete_files(table.refresh().view)}


@pytest.mark.parametrize("verb", VERBS)
def test_no_operation_writes_forbidden_delete_files(table: tf.Table, verb: str) -> None:
    """SP-22: the table is scanned for the rows, and they are deleted by position; with copy-on-write no delete file is
    written (SP-21)."""
    act, expected = VERBS[verb]
    position = DeleteKind.POSITION if table.metadata.format_version == 2 else DeleteKind.DELETION_VECTOR
    snapshot_id = table.snapshot_id
    for properties, allowed in (
        ({"write.delete.blind": "off"}, {position}),
        ({"write.delete.blind": "equality"}, {position, DeleteKind.EQUALITY}),
        ({"write.delete.mode": "copy-on-write"}, set[DeleteKind]()),
    ):
        if verb == "a transaction" and table.metadata.format_version == 3 and not allowed:
            continue  # `test_remaining_rows_keep_their_ids`
        table.refresh().set_properties(properties)
        table.rollback(snapshot_id=snapshot_id)
        act(table)
        assert live_values(table.refresh(), "id") == expected, properties
        assert kinds(table) <= allowed, properties
        table.remove_properties(*properties)


def test_explicit_mode_that_the_owner_forbids_is_rejected(table: tf.Table) -> None:
    """SP-22."""
    table.set_properties({"write.delete.blind": "equality"})
    for act in (
        lambda: table.delete("id = 2", mode="range"),
        lambda: table.delete_prefix({"id": 2}, mode="range"),
        lambda: table.delete_range(lower=(2,), upper=(4,), mode="range"),
    ):
        with pytest.raises(InvalidArgumentError, match=r"writes a range delete, which the owner of db\.t"):
            act()
    table.delete("id = 2", mode="equality")
    assert kinds(table) == {DeleteKind.EQUALITY}
    table.set_properties({"write.delete.blind": "off"})
    with pytest.raises(InvalidArgumentError, match="writes an equality delete"):
        table.delete("id = 3", mode="equality")
    assert live_values(table.refresh(), "id") == [1, 3, 4, 5, 6]


def test_partition_drop_is_rejected_if_it_needs_a_forbidden_range_delete(tmp_path: Path) -> None:
    """SP-22, RP-12: a file lies on both sides of the border."""
    catalog = new_lake(tmp_path / "lake")
    ranges = tf.RangePartitions(on=["id"], bounds=[(0, 20)], splits=[])
    table = catalog.create_table(
        "db.t", SCHEMA, key=["id"], range_partitions=ranges, properties={"write.delete.blind": "off"}
    )
    table.append(rows_of(1, 11))
    table.range_partitions.split(10)
    with pytest.raises(InvalidArgumentError, match=r"write\.delete\.blind='off' forbids"):
        table.range_partitions.drop(0, 10)
    assert live_values(table.refresh(), "id") == [1, 11]
