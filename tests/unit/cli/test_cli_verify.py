"""The command line: `verify`, its text, JSON and exit status, and the commands that it prints."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from cli_lake import TABLE, Lake, make_lake
from damaged_tables import alter_entries, path_of

from tableformat.testing.table_files import live_data_files, live_delete_files


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "lake")


def damage(lake: Lake) -> str:
    """Remove the range delete file; the location."""
    with lake.table() as table:
        location = next(each.file_path for each in live_delete_files(table) if each.range_spans is not None)
    path_of(location).unlink()
    return location


def test_clean_table_ends_with_status_0(lake: Lake) -> None:
    run = lake.run("verify", TABLE)
    assert (run.status, run.stderr) == (0, "")
    assert run.stdout.endswith("\nNo problems found.\n")
    assert "rows read" not in run.stdout
    deep = lake.run("verify", TABLE, "--deep")
    assert deep.status == 0
    assert "rows read  12\n" in deep.stdout
    document = lake.json("verify", TABLE, "--deep")
    assert (document["is_clean"], document["findings"], document["row_count"]) == (True, [], 12)
    assert (document["deep"], document["snapshot_count"], document["repaired"]) == (True, 3, [])


def test_repeated_key_ends_with_status_1(lake: Lake) -> None:
    """MT-120: the table is clean, but its keys are not unique."""
    assert lake.run("verify", TABLE, "--keys").status == 0
    with lake.table() as table:
        table.append(table.scan("id1 = 'C'").to_arrow())
    assert lake.run("verify", TABLE).status == 0
    run = lake.run("verify", TABLE, "--keys")
    assert (run.status, run.stderr) == (1, "")
    assert "repeated keys  4\n" in run.stdout
    assert "warning: repeated-key  1\n" in run.stdout
    run = lake.run("verify", TABLE, "--keys", "-o", "json")
    assert (json.loads(run.stdout)["repeated_key_count"], json.loads(run.stdout)["is_clean"]) == (4, True)


def test_keys_of_a_table_without_a_key_are_refused(lake: Lake) -> None:
    columns = ("id long", "v long")
    assert lake.run("create", "db.loose", *columns).status == 0
    assert "db.loose has no key" in lake.error("verify", "db.loose", "--keys")["message"]


def test_findings_end_with_status_1_and_runnable_commands(lake: Lake) -> None:
    """MT-76"""
    location = damage(lake)
    run = lake.run("verify", TABLE)
    assert (run.status, run.stderr) == (1, "")
    assert "error: missing-file  1\n" in run.stdout
    assert f"- {location}\n" in run.stdout
    (command,) = (line.strip() for line in run.stdout.splitlines() if line.startswith("    tableformat"))
    _, *words = shlex.split(command)
    assert words[:2] == ["rollback", TABLE]
    assert lake.run(*words, "--yes").status == 0
    left = lake.run("verify", TABLE, "-o", "json")
    assert left.status == 1
    (finding,) = json.loads(left.stdout)["findings"]
    assert (finding["kind"], finding["file"], len(finding["snapshot_ids"])) == ("missing-file", location, 2)
    again = lake.run("verify", TABLE).stdout
    (command,) = (line.strip() for line in again.splitlines() if line.startswith("    tableformat"))
    _, *words = shlex.split(command)
    assert words[:2] == ["expire-snapshots", TABLE]
    assert lake.run(*words, "--yes").status == 0
    assert lake.run("verify", TABLE, "--deep").status == 0


def test_verify_one_snapshot_and_a_table_path(lake: Lake) -> None:
    with lake.table() as table:
        first = table.at(tag="first").snapshot
        metadata_file = table.iceberg.metadata_location
    assert first is not None
    damage(lake)
    assert lake.run("verify", TABLE, "--snapshot", first.snapshot_id).status == 0
    assert lake.run("verify", TABLE, "--snapshot", 7).status == 1
    assert lake.run("verify", metadata_file).status == 1
    assert "read-only" in lake.error("verify", metadata_file, "--repair")["message"]


def test_repair_fixes_warnings(lake: Lake) -> None:
    """MT-77: warnings end with status 0; a dry run reports, and the command in the finding repairs."""
    with lake.table() as table:
        table.delete("id1 = 'C' AND num_cal = 0", mode="scan")
        (delete,) = (each for each in live_delete_files(table) if each.equality_ids is None)
        named = next(each for each in live_data_files(table) if each.file_path == delete.referenced_data_file)
        alter_entries(table, lambda entry: [] if entry.file.file_path == named.file_path else [entry])
    run = lake.run("verify", TABLE)
    assert run.status == 0
    assert "warning: dead-delete  1\n" in run.stdout
    planned = lake.run("verify", TABLE, "--repair", "--dry-run").stdout
    assert "Would drop " in planned
    assert "dead-delete" in planned
    (command,) = {line.strip() for line in run.stdout.splitlines() if line.startswith("    tableformat")}
    assert command == f"tableformat verify {TABLE} --repair"
    document = lake.json(*shlex.split(command)[1:])
    assert delete.file_path in [each["file"] for each in document["repaired"]]
    assert [each["kind"] for each in document["findings"] if each["kind"] == "dead-delete"] == []
    assert lake.run("verify", TABLE, "--dry-run").status == 2
