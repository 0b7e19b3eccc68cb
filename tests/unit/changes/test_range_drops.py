"""Dropped range partitions in the change feed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf

SCHEMA = pa.schema([("year", pa.int32()), ("id", pa.int64())])
REQUIRED = pa.schema([each.with_nullable(False) for each in SCHEMA])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    years = tf.RangePartitions(on=["year"], bounds=[(2020, 2024)], step=1)
    created = catalog.create_table("db.t", SCHEMA, key=["year", "id"], range_partitions=years)
    created.append(pa.table({"year": [2020, 2021, 2022, 2023], "id": [0, 1, 2, 3]}, SCHEMA))
    return created


def told(feed: tf.Changes) -> list[tuple[str, int]]:
    rows = feed.to_arrow().to_pylist()
    return [(row["_change_type"], row["year"]) for row in rows]


def test_range_drops_are_reported_as_rows_nothing_or_events(table: tf.Table) -> None:
    """RP-25: neighbours that were dropped together are one event; other deletes stay rows."""
    seen = table.snapshot_id
    table.range_partitions.drop(2020, 2022)
    table.delete_prefix({"year": 2022})
    retired = table.range_partitions.retire(2023, 2024)
    assert told(table.changes(from_snapshot_id=seen)) == [("delete", year) for year in (2020, 2021, 2022, 2023)]
    feed = table.changes(from_snapshot_id=seen, range_drops="event")
    assert told(feed) == told(table.changes(from_snapshot_id=seen, range_drops="skip")) == [("delete", 2022)]
    assert told(feed.filter("year = 2022")) == [("delete", 2022)]
    events = feed.range_events().to_pylist()
    assert [(each["event"], each["range"], each["lower"], each["upper"], each["tag"]) for each in events] == [
        ("drop", "[2020, 2022)", 2020, 2022, None),
        ("retire", "[2023, 2024)", 2023, 2024, retired.tag),
    ]
    versions = feed.to_arrow()["_commit_version"].to_pylist()
    assert [each["_commit_version"] for each in events] == [versions[0] - 1, versions[0] + 1]
    assert events[1]["_commit_snapshot_id"] == retired.snapshot_id
    assert retired.tag is not None
    table.range_partitions.restore(retired.tag)
    assert told(table.changes(from_snapshot_id=retired.snapshot_id, range_drops="event")) == [("insert", 2023)]


def drop_column(table: tf.Table, name: str) -> None:
    """Drop a column, after the range partitions and the partition field that use it."""
    table.refresh().remove_properties("tableformat.range-partitions")
    with table.refresh().update_spec() as spec:
        spec.remove_field(name)
    with table.refresh().update_schema() as update:
        update.delete_column(name)


def test_drop_of_removed_column_applies_to_carried_rows(tmp_path: Path) -> None:
    """RP-26: the branch could not be published any more."""
    table = table_by_year(tmp_path)
    table.create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
    table.append(pa.table({"year": [2020, 2022], "id": [7, 8]}, REQUIRED))
    assert table.catalog is not None
    table.catalog.load_table("db.t", branch="ingest").range_partitions.drop(2020, 2021)
    drop_column(table, "year")
    table.refresh().maintenance.publish("ingest")
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 8]


def table_by_year(directory: Path) -> tf.Table:
    """A table with a column outside the key that can be dropped."""
    catalog = new_lake(directory / "by_year")
    years = tf.RangePartitions(on=["year"], bounds=[(2020, 2024)], step=1)
    created = catalog.create_table("db.t", REQUIRED, key=["id"], range_partitions=years)
    created.append(pa.table({"year": [2020, 2021, 2022, 2023], "id": [0, 1, 2, 3]}, REQUIRED))
    return created
