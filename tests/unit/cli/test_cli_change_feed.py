"""`tableformat changes`: the change feed on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_lake import TABLE, Lake, make_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make_lake(tmp_path_factory.mktemp("changes") / "lake")


@pytest.fixture(scope="module")
def snapshot_ids(lake: Lake) -> list[int]:
    with lake.table() as table:
        ids: list[int] = table.history()["snapshot_id"].to_pylist()
    return ids


def test_deleted_and_added_rows_are_printed_in_order(lake: Lake) -> None:
    """CF-6: twelve rows are added, three are deleted."""
    lines = lake.run("changes", TABLE, "--columns", "_change_type,_commit_version,id1,num_cal").stdout.splitlines()
    assert lines[0].split() == ["_change_type", "_commit_version", "id1", "num_cal"]
    told = [tuple(line.split()[:3]) for line in lines if "insert" in line or "delete" in line]
    assert told == [("insert", "1", name) for name in "AAAABBBBCCCC"] + [
        ("delete", "2", "A"),
        ("delete", "2", "A"),
        ("delete", "3", "B"),
    ]


def test_json_has_the_start_of_the_next_range(lake: Lake, snapshot_ids: list[int]) -> None:
    """CF-1: the first snapshot is left out, the last is in."""
    first, second, third = snapshot_ids
    document = lake.json("changes", TABLE, "--from", first, "--to", second, "--columns", "_change_type,num_cal")
    assert [list(row.values()) for row in document["rows"]] == [["delete", 0], ["delete", 1]]
    assert (document["from_snapshot_id"], document["to_snapshot_id"]) == (first, second)
    assert document["columns"][0] == {"name": "_change_type", "type": "string"}
    assert lake.json("changes", TABLE, "--from", third)["row_count"] == 0
    assert lake.json("changes", TABLE, "--since", "2999-01-01")["row_count"] == 0
    assert lake.json("changes", TABLE, "--until", "2001-01-01")["row_count"] == 0


def test_a_consumer_continues_where_it_stopped(tmp_path: Path) -> None:
    """CF-11"""
    lake = make_lake(tmp_path / "lake")
    with lake.table() as table:
        first, *_, last = table.history()["snapshot_id"].to_pylist()
    assert lake.run("consumer", TABLE).stderr == "No rows.\n"
    assert lake.json("consumer", TABLE, "mart", first)["snapshot_id"] == first
    (listed,) = lake.json("consumer", TABLE)["rows"]
    assert (listed["name"], listed["lag_snapshots_count"], listed["state"]) == ("mart", 2, "protected")
    feed = lake.json("changes", TABLE, "--consumer", "mart")
    assert (feed["row_count"], feed["to_snapshot_id"]) == (3, last)
    assert lake.json("consumer", TABLE, "mart")["snapshot_id"] == last
    assert lake.json("changes", TABLE, "--consumer", "mart")["row_count"] == 0
    assert lake.run("consumer", TABLE, "mart", "--delete").status == 0
    assert lake.error("changes", TABLE, "--consumer", "mart")["type"] == "ConsumerNotFoundError"
