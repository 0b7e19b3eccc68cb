"""The command line: range partitions."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from cli_lake import Lake, make_lake

import tableformat as tf

TABLE = "db.sales"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = make_lake(tmp_path / "lake")
    years = tf.RangePartitions(on=["year"], bounds=[(2020, 2024)], step=1, retain=2, ahead=1)
    columns = pa.schema([("year", pa.int32()), ("id", pa.int64())])
    with tf.open_catalog(str(tmp_path / "lake")) as catalog:
        table = catalog.create_table(TABLE, columns, key=["year", "id"], range_partitions=years)
        table.append(pa.table({"year": [2020, 2020, 2021], "id": [1, 2, 3]}))
    return lake


def test_partitions_are_listed(lake: Lake) -> None:
    run = lake.run("partitions", TABLE)
    assert (run.status, run.stderr) == (0, "")
    lines = [line.split() for line in run.stdout.splitlines()]
    assert lines[0] == ["partition", "state", "files", "rows", "bytes", "straddling"]
    assert lines[2][:5] == ["[2020,", "2021)", "live", "1", "2"]
    assert lines[-1][:5] == ["[2023,", "2024)", "empty", "0", "0"]
    listed = lake.run("partitions", TABLE, "-o", "json").document["partitions"]
    assert [(each["lower"], each["upper"], each["record_count"]) for each in listed][:2] == [
        (2020, 2021, 2),
        (2021, 2022, 1),
    ]


def test_ranges_are_added_and_dropped_in_one_commit(lake: Lake) -> None:
    changes = ("alter-partitions", TABLE, "--add", "[2030, 2031)", "--drop", "[2020, 2021)")
    tried = lake.run(*changes, "--dry-run")
    assert tried.stdout.splitlines() == [
        "db.sales: would be added [2030, 2031).",
        "db.sales: would be dropped [2020, 2021) with 1 data file of 2 rows.",
    ]
    refused = lake.run(*changes)
    assert refused.status == 2
    assert "pass --yes to confirm" in refused.stderr
    document = lake.run(*changes, "--yes", "-o", "json").document
    assert (document["dropped"], document["removed_row_count"]) == (["[2020, 2021)"], 2)
    listed = lake.run("partitions", TABLE, "-o", "json").document["partitions"]
    assert [each["partition"] for each in listed] == ["[2021, 2022)", "[2022, 2023)", "[2023, 2024)", "[2030, 2031)"]


def test_advance_moves_the_window(lake: Lake) -> None:
    run = lake.run("advance-window", TABLE, "--now", "2023", "--dry-run")
    assert run.stdout.splitlines()[0] == "db.sales: would be added [2024, 2025)."
    assert lake.run("advance-window", TABLE, "--now", "2023", "--yes", "-o", "json").document["dropped"] == [
        "[2020, 2021)"
    ]


def test_retired_range_is_restored(lake: Lake) -> None:
    tried = lake.run("retire", TABLE, "[2020, 2021)", "--dry-run", "-o", "json").document
    assert (tried["dry_run"], tried["dropped"]) == (True, ["[2020, 2021)"])
    run = lake.run("retire", TABLE, "[2020, 2021)")
    assert run.stdout.splitlines()[1] == "To restore: tableformat restore db.sales retired-2020-2021"
    shown = lake.run("partitions", TABLE).stdout.splitlines()
    assert shown[0].split()[-2:] == ["tag", "retired_at"]
    assert shown[2].split()[2:5] == ["retired", "1", "2"]
    past = lake.run("partitions", TABLE, "--tag", "retired-2020-2021", "-o", "json").document["partitions"]
    assert [each["state"] for each in past] == ["live", "live", "empty", "empty"]
    history = lake.run("partitions", TABLE, "--history", "-o", "json").document["changes"]
    assert [(each["change"], each["partition"]) for each in history] == [
        ("defined", "[2020, 2024)"),
        ("retired", "[2020, 2021)"),
    ]
    assert "[2020, 2021)" in lake.run("partitions", TABLE, "--history").stdout
    assert lake.run("restore", TABLE, "retired-2020-2021", "-o", "json").document["restored_data_files_count"] == 1
    assert lake.run("restore", TABLE, "retired-2020-2021").status == 1


def test_health_names_the_commands_and_maintain_moves_windows(tmp_path: Path) -> None:
    """RP-11, RP-18"""
    lake = make_lake(tmp_path / "lake")
    today = date.today()
    days = tf.RangePartitions(on=["d"], bounds=[(today - timedelta(9), today)], step="day", retain="5 days", ahead=1)
    with tf.open_catalog(str(tmp_path / "lake")) as catalog:
        schema = pa.schema([pa.field("d", pa.date32(), nullable=False)])
        table = catalog.create_table("db.days", schema, range_partitions=days)
        table.append(pa.table({"d": [today - timedelta(8), today - timedelta(1)]}, schema=schema))
    assert "advance-window db.days" in lake.run("health", "db.days").stdout
    page = lake.run("maintain", "db.days", "--only", "advance-window", "--yes").stdout
    assert "advance-window" in page
    assert "removed data files 1" in page
    assert "advance-window db.days" not in lake.run("health", "db.days").stdout
