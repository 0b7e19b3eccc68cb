"""Range partitions of earlier snapshots, and the history of their changes."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.errors import InvalidArgumentError

SCHEMA = pa.schema([("n", pa.int32()), ("id", pa.int64())])


def made(catalog: tf.Catalog, **properties: str) -> tf.Table:
    ranges = tf.RangePartitions(on=["n"], bounds=[(0, 10)])
    return catalog.create_table("db.t", SCHEMA, key=["n", "id"], range_partitions=ranges, properties=properties)


def append(table: tf.Table, *numbers: int) -> int:
    snapshot_id = table.append(pa.table({"n": numbers, "id": [1] * len(numbers)}, SCHEMA)).snapshot_id
    assert snapshot_id is not None
    return snapshot_id


def listed(rows: pa.Table) -> list[tuple[str, str]]:
    return [(row["partition"], row["state"]) for row in rows.to_pylist()]


def changes(table: tf.Table) -> list[tuple[Any, ...]]:
    names = ("change", "partition", "border", "snapshot_id", "tag")
    return [tuple(row[name] for name in names) for row in table.range_partitions.history().to_pylist()]


def test_list_at_a_snapshot_has_the_ranges_of_that_time(catalog: tf.Catalog) -> None:
    """RP-32: in Python by id, time and tag, in `layers`, and in DuckDB; ranges that were dropped later are live."""
    table = made(catalog)
    first = append(table, 1)
    table.range_partitions.add(10, 20)
    table.create_tag("before")
    second = append(table, 11)
    table.range_partitions.drop(0, 10)
    table.range_partitions.add(30, 40)
    append(table, 31)
    expected = {first: [("[0, 10)", "live")], second: [("[0, 10)", "live"), ("[10, 20)", "live")]}
    for snapshot_id, partitions in expected.items():
        assert listed(table.range_partitions.list(snapshot_id=snapshot_id)) == partitions
    assert listed(table.range_partitions.list(tag="before")) == expected[first]
    moment = next(each.timestamp_ms for each in table.metadata.snapshots if each.snapshot_id == second)
    assert listed(table.range_partitions.list(as_of=moment)) == expected[second]
    assert listed(table.range_partitions.list()) == [("[10, 20)", "live"), ("[30, 40)", "live")]
    connection = duckdb.connect()
    tf.duckdb.attach(connection, catalog, tag="before")
    found = connection.sql('SELECT "partition", state FROM lake.db."t$range_partitions"').fetchall()
    assert found == expected[first]
    tf.duckdb.detach(connection)
    assert "[30" not in table.layers(snapshot_id=first).text(width=60)


def test_list_of_a_branch_has_the_current_ranges(catalog: tf.Catalog) -> None:
    """RP-32: its head is not an earlier state, whenever it was committed."""
    table = made(catalog)
    append(table, 1)
    table.create_branch("audit")
    table.range_partitions.add(10, 20)
    append(table, 11)
    branch = catalog.load_table("db.t", branch="audit")
    for rows in (branch.range_partitions.list(), branch.inspect.range_partitions()):
        assert listed(rows) == [("[0, 10)", "live"), ("[10, 20)", "empty")]


def test_list_before_definition_raises_error(catalog: tf.Catalog) -> None:
    """RP-32: all of its key space existed."""
    table = catalog.create_table("db.t", SCHEMA, key=["n", "id"])
    first = append(table, 1)
    table.range_partitions.define(tf.RangePartitions(on=["n"], bounds=[(0, 10)]))
    assert listed(table.range_partitions.list()) == [("[0, 10)", "live")]
    with pytest.raises(InvalidArgumentError, match="had no range partitions at this snapshot"):
        table.range_partitions.list(snapshot_id=first)


@pytest.mark.parametrize("format_version", ["2", "3"])
def test_history_contains_every_change(catalog: tf.Catalog, format_version: str) -> None:
    """RP-33: changes without a snapshot included; a retirement and its end name the tag."""
    table = made(catalog, **{"format-version": format_version})
    assert table.metadata.format_version == int(format_version)
    append(table, 1)
    table.range_partitions.alter(add=[(10, 20)], split=[5])
    append(table, 11)
    table.range_partitions.merge(0, 10)
    tag = table.range_partitions.retire(10, 20).tag
    assert tag is not None
    retired = table.snapshot_id
    dropped = table.range_partitions.drop(0, 10).snapshot_id
    restored = table.range_partitions.restore(tag).snapshot_id
    assert changes(table) == [
        ("defined", "[0, 10)", None, None, None),
        ("added", "[10, 20)", None, None, None),
        ("split", "[0, 10)", "5", None, None),
        ("merged", "[0, 10)", "5", None, None),
        ("retired", "[10, 20)", None, retired, tag),
        ("dropped", "[0, 10)", None, dropped, None),
        ("restored", "[10, 20)", None, restored, tag),
    ]
    times = table.range_partitions.history()["changed_at"].to_pylist()
    assert None not in times
    assert times == sorted(times)
    assert table.inspect.range_partition_history().equals(table.range_partitions.history())


@pytest.mark.parametrize("format_version", ["2", "3"])
def test_history_without_metadata_log_uses_snapshot_summaries(catalog: tf.Catalog, format_version: str) -> None:
    """RP-32, RP-33: additions and splits are lost; at an old snapshot they exist until the next change that made a
    snapshot."""
    table = made(catalog, **{"format-version": format_version})
    first = append(table, 1)
    table.range_partitions.alter(add=[(10, 20)], split=[5])
    tag = table.range_partitions.retire(10, 20).tag
    retired = table.snapshot_id
    table.set_properties({"write.metadata.previous-versions-max": "1"})
    append(table, 2)
    assert changes(table) == [
        ("retired", "[10, 20)", None, retired, tag),
        ("existing", "[0, 10)", None, None, None),
    ]
    at_first = table.range_partitions.list(snapshot_id=first)
    assert listed(at_first) == [("[0, 5)", "live"), ("[5, 10)", "empty"), ("[10, 20)", "empty")]
