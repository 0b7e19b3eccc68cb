"""Health findings about range partitions."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
from pyiceberg.table.update import SetPropertiesUpdate

import tableformat as tf
from tableformat.operations.history.references import commit_updates
from tableformat.properties import RANGE_PARTITIONS

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False)])


def findings(table: tf.Table) -> dict[str, str]:
    return {each.name: each.what for each in table.refresh().maintenance.health().findings}


def test_uncovered_rows_and_straddling_files_findings(catalog: tf.Catalog) -> None:
    """RP-18: and no finding if there is nothing to report."""
    table = catalog.create_table("db.t", SCHEMA, range_partitions=tf.RangePartitions(on=["n"], bounds=[(0, 100)]))
    table.append(pa.table({"n": [10, 60]}, schema=SCHEMA))
    assert findings(table) == {}
    table.range_partitions.split(50)
    assert findings(table)["straddling-files"].startswith("1 data files cross range boundaries")
    table.maintenance.compact()
    table.iceberg.refresh()
    table.iceberg.append(pa.table({"n": [500]}, schema=SCHEMA))
    found = findings(table)
    assert found["uncovered-rows"].startswith("1 data files may hold rows")
    assert "straddling-files" not in found


def test_unknown_range_partition_version_is_a_finding(catalog: tf.Catalog) -> None:
    """RP-1, RP-18: health and the other jobs go on."""
    table = catalog.create_table("db.t", SCHEMA, key=["n"])
    table.append(pa.table({"n": [1]}, schema=SCHEMA))
    update = SetPropertiesUpdate(updates={RANGE_PARTITIONS: '{"version":2}'})
    commit_updates(table.iceberg, (), (update,))
    assert "version 2" in findings(table)["unknown-range-partitions"]
    report = table.maintenance.run(only=("advance_window", "convert_deletes"))
    assert "version 2" in report.report_of("advance_window").reason
    assert report.report_of("convert_deletes").reason == ""


def test_overdue_window_is_a_finding(catalog: tf.Catalog) -> None:
    """RP-18"""
    days = pa.schema([pa.field("day", pa.date32(), nullable=False)])
    today = date.today()
    ranges = tf.RangePartitions(
        on=["day"], bounds=[(today - timedelta(30), today)], step="1 day", retain="10 days", ahead=2
    )
    table = catalog.create_table("db.d", days, range_partitions=ranges)
    told = findings(table)["overdue-window"]
    assert "partitions are older than the table retains and [" in told
    assert "is due and does not exist" in told
    report = table.maintenance.run(only=("advance_window",)).report_of("advance_window")
    assert report.result.dropped
    assert report.result.added
    assert "overdue-window" not in findings(table)


DAYS = pa.schema([pa.field("day", pa.date32(), nullable=False)])


def test_window_may_be_overdue_at_either_end(catalog: tf.Catalog) -> None:
    """RP-18: if only old partitions have to be dropped, and if only new ones are missing."""
    today = date.today()
    old = tf.RangePartitions(on=["day"], bounds=[(today - timedelta(30), today)], step="1 day", retain="10 days")
    missing = tf.RangePartitions(on=["day"], bounds=[(today - timedelta(3), today)], step="1 day", ahead=2)
    for name, ranges, what in (("db.old", old, "older than"), ("db.missing", missing, "is due and does not exist")):
        told = findings(catalog.create_table(name, DAYS, range_partitions=ranges))
        assert told.keys() == {"overdue-window"}
        assert what in told["overdue-window"]
        assert " and " not in told["overdue-window"].replace("due and does", "")
