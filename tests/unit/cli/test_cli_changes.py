"""The command line: deletes, conversion, rollback, tags, the demo."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cli_lake import TABLE, Lake, make_lake
from new_lakes import new_lake

import tableformat as tf
from tableformat.cli import confirm
from tableformat.testing.table_rows import live_tuples


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "lake")


ALL_KEYS = [(id1, number) for id1 in "ABC" for number in range(4)]
"""Before anything was deleted."""


def live_keys(lake: Lake) -> list[tuple[str, int]]:
    with lake.table() as table:
        return live_tuples(table, columns=["id1", "num_cal"])


def snapshot_id(lake: Lake) -> int | None:
    with lake.table() as table:
        return table.snapshot_id


class TestDeletePrefix:
    def test_deletes_and_prints_undo_command(self, lake: Lake) -> None:
        before, rows = snapshot_id(lake), live_keys(lake)
        run = lake.run("delete-prefix", TABLE, "id1=C", "id2=1")
        assert (run.status, run.stderr) == (0, "")
        lines = run.stdout.splitlines()
        assert lines[0] == "db.calendars: deleted id1 = 'C', id2 = 1."
        assert lines[1].startswith(f"Snapshot {snapshot_id(lake)}: 1 delete file added, no row read, ")
        assert lines[2] == f"Undo: tableformat rollback db.calendars {before}"
        assert live_keys(lake) == [row for row in rows if row not in (("C", 2), ("C", 3))]

    def test_printed_command_quotes_table_name(self, lake: Lake) -> None:
        with tf.open_catalog(str(lake.directory)) as catalog:
            catalog.rename_table(TABLE, "db.it's")
        undo = lake.run("delete-prefix", "db.it's", "id1=C").stdout.splitlines()[2].removeprefix("Undo: tableformat ")
        assert shlex.split(undo)[:2] == ["rollback", "db.it's"]
        assert lake.run(*shlex.split(undo), "--yes").status == 0
        plan = lake.run("compact", "db.it's", "--rewrite-all", "--dry-run").stdout.splitlines()[-1]
        assert shlex.split(plan.partition("tableformat ")[2])[:2] == ["compact", "db.it's"]

    def test_json(self, lake: Lake) -> None:
        before = snapshot_id(lake)
        document = lake.json("delete-prefix", TABLE, "id1=C")
        assert (document["dry_run"], document["previous_snapshot_id"]) == (False, before)
        assert document["snapshot_id"] == snapshot_id(lake)
        assert (document["added_delete_files_count"], document["deleted_row_count"]) == (1, None)

    def test_dry_run_counts_live_rows_and_changes_nothing(self, lake: Lake) -> None:
        before, files = snapshot_id(lake), sorted(lake.directory.rglob("*.parquet"))
        document = lake.json("delete-prefix", TABLE, "id1=B", "--dry-run")
        assert (document["dry_run"], document["live_row_count"], document["snapshot_id"]) == (True, 3, before)
        assert "would delete  3 rows with id1 = 'B'\n" in lake.run("delete-prefix", TABLE, "id1=B", "--dry-run").stdout
        assert (snapshot_id(lake), sorted(lake.directory.rglob("*.parquet"))) == (before, files)

    @pytest.mark.parametrize("name", ["keys.csv", "keys.jsonl"])
    def test_prefixes_from_a_file(self, lake: Lake, tmp_path: Path, name: str) -> None:
        path, rows = tmp_path / name, live_keys(lake)
        text = "id2,id1\n1,C\n0,B\n" if name.endswith("csv") else '{"id2": 1, "id1": "C"}\n{"id2": 0, "id1": "B"}\n'
        path.write_text(text)
        counted = lake.json("delete-prefix", TABLE, "--from", path, "--dry-run")["live_row_count"]
        run = lake.run("delete-prefix", TABLE, "--from", path)
        assert run.stdout.startswith(f"db.calendars: deleted the 2 keys of {path}.\nSnapshot ")
        assert [row for row in rows if row not in live_keys(lake)] == [("B", 0), ("C", 2), ("C", 3)]
        assert counted == 3

    def test_invalid_prefix_files_change_nothing(self, lake: Lake, tmp_path: Path) -> None:
        before = snapshot_id(lake)
        for text, kind in (("id2\n1\n", "InvalidKeyError"), ("id1,id2\nA,x\n", "InvalidArgumentError")):
            (tmp_path / "keys.csv").write_text(text)
            assert lake.error("delete-prefix", TABLE, "--from", tmp_path / "keys.csv")["type"] == kind
        assert lake.run("delete-prefix", TABLE, "id1=A", "--from", tmp_path / "keys.csv").status == 2
        assert snapshot_id(lake) == before

    @pytest.mark.parametrize("prefix", [["id1"], ["=A"], ["id1=A", "id1=B"], []])
    def test_usage_errors(self, lake: Lake, prefix: list[str]) -> None:
        assert lake.run("delete-prefix", TABLE, *prefix).status == 2


class TestDeleteRange:
    def test_half_open_range_on_any_column(self, lake: Lake) -> None:
        bounds = ["--on", "ts", "--lower", "2026-01-03T12:00Z", "--upper", "2026-01-04T12:00Z"]
        assert lake.json("delete-range", TABLE, *bounds, "--dry-run")["live_row_count"] == 3
        run = lake.run("delete-range", TABLE, *bounds)
        assert run.stdout.startswith(
            "db.calendars: deleted 2026-01-03 12:00:00+00:00 <= ts < 2026-01-04 12:00:00+00:00.\n"
        )
        assert live_keys(lake) == [("A", 3), ("B", 0), ("B", 3), ("C", 0), ("C", 1), ("C", 3)]

    def test_composite_bounds_of_the_key(self, lake: Lake) -> None:
        document = lake.json("delete-range", TABLE, "--lower", "B,1", "--upper", "C,1")
        assert document["added_delete_files_count"] == 1
        assert live_keys(lake) == [("A", 2), ("A", 3), ("B", 0), ("C", 2), ("C", 3)]

    def test_open_side_includes_nulls_and_null_can_be_given(self, lake: Lake) -> None:
        null_only = ["--on", "note", "--lower", r"\N", "--upper", ""]
        assert lake.json("delete-range", TABLE, *null_only, "--dry-run")["live_row_count"] == 3
        assert (
            lake.json("delete-range", TABLE, "--on", "note", "--upper", "[red]line 1", "--dry-run")["live_row_count"]
            == 5
        )

    def test_without_bounds_is_a_usage_error(self, lake: Lake) -> None:
        assert lake.run("delete-range", TABLE).status == 2


class TestConvertDeletes:
    def test_dry_run_reports_the_same_as_the_conversion(self, lake: Lake) -> None:
        before, rows = snapshot_id(lake), live_keys(lake)
        planned = lake.json("convert-deletes", TABLE, "--dry-run")
        assert (planned["dry_run"], planned["deleted_row_count"]) == (True, 3)
        assert snapshot_id(lake) == before
        done = lake.json("convert-deletes", TABLE)
        same = ("removed_range_delete_files_count", "removed_equality_delete_files_count", "deleted_row_count")
        assert [done[name] for name in same] == [planned[name] for name in same] == [1, 1, 3]
        assert {entry["kind"] for entry in lake.json("deletes", TABLE)["delete_files"]} == {"position"}
        assert live_keys(lake) == rows


class TestRollback:
    def test_with_yes(self, lake: Lake) -> None:
        history = [entry["snapshot_id"] for entry in lake.json("history", TABLE)["snapshots"]]
        document = lake.json("rollback", TABLE, history[-1], "--yes")
        assert document == {
            "table": TABLE,
            "branch": "main",
            "previous_snapshot_id": history[0],
            "current_snapshot_id": history[-1],
            "undone_snapshot_ids": history[:-1],
        }
        assert live_keys(lake) == ALL_KEYS
        after = lake.run("history", TABLE).stdout.splitlines()
        assert after[2].endswith("append: +12 rows [first] [main]")
        assert after[3].endswith("+1 equality delete (rolled back)")

    def test_rollback_by_tag_and_by_time(self, lake: Lake) -> None:
        run = lake.run("rollback", TABLE, "--tag", "first", "-y")
        assert run.stdout.endswith("; 2 snapshots rolled back.\n")
        oldest = lake.json("history", TABLE)["snapshots"][-1]
        assert lake.json("rollback", TABLE, "--as-of", oldest["made_current_at"])["undone_snapshot_ids"] == []

    def test_asks_on_a_terminal_and_requires_yes_otherwise(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        before = snapshot_id(lake)
        run = lake.run("rollback", TABLE, "--tag", "first")
        assert run.status == 2
        assert "pass --yes to confirm" in run.stderr
        answers: list[bool] = [False, True]

        class Terminal:
            def isatty(self) -> bool:
                return True

        def answer(question: str, **_options: Any) -> bool:
            assert question == "Roll back 2 snapshots of db.calendars, branch main?"
            return answers.pop(0)

        monkeypatch.setattr(confirm, "sys", type("Streams", (), {"stdin": Terminal()}))
        monkeypatch.setattr(confirm.typer, "confirm", answer)
        refused = lake.run("rollback", TABLE, "--tag", "first")
        assert (refused.status, refused.stdout, refused.stderr) == (1, "", "Nothing was changed.\n")
        assert snapshot_id(lake) == before
        assert lake.run("rollback", TABLE, "--tag", "first").status == 0
        assert live_keys(lake) == ALL_KEYS


class TestTag:
    def test_create_list_and_remove(self, lake: Lake) -> None:
        head = snapshot_id(lake)
        assert lake.json("tag", TABLE, "today") == {"table": TABLE, "tag": "today", "snapshot_id": head}
        first = lake.json("history", TABLE)["snapshots"][-1]["snapshot_id"]
        assert lake.run("tag", TABLE, "oldest", first).stdout == f"db.calendars: tag oldest is at snapshot {first}.\n"
        assert [tag["tag"] for tag in lake.json("tag", TABLE)["tags"]] == ["first", "oldest", "today"]
        assert lake.run("tag", TABLE, "oldest", "--delete").stdout == "db.calendars: tag oldest removed.\n"
        listed = [line.split() for line in lake.run("tag", TABLE).stdout.splitlines()[2:]]
        assert listed == [["first", str(first)], ["today", str(head)]]
        assert lake.run("tag", "db.empty").stderr == "db.empty has no tags.\n"


class TestDemo:
    def test_local_writer_prints_how_to_inspect_the_lake(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path / "work" / "lake")
        small = ["--directory", tmp_path / "work", "--writer", "local", "--batches", "2", "--messages", "40"]
        run = lake.run("demo", *small)
        assert run.status == 0, run.stderr
        assert "Every reader saw the same rows." in run.stdout
        assert run.stderr.startswith("To look at it: tableformat --catalog ")
        assert lake.json("ls")["tables"] == [{"identifier": "db.calendars"}]
        again = lake.run("demo", *small, "-o", "json")
        with lake.table() as table:
            assert json.loads(again.stdout)["row_count"] == table.scan().count()

    def test_foreign_directory_and_unknown_writer(self, tmp_path: Path) -> None:
        (tmp_path / "mine.txt").write_text("keep me")
        lake = Lake(tmp_path)
        assert lake.error("demo", "-d", tmp_path, "--writer", "local")["type"] == "InvalidArgumentError"
        assert (tmp_path / "mine.txt").read_text() == "keep me"
        assert lake.run("demo", "--writer", "flink").status == 2


def test_keyless_table_supports_only_range_deletes(tmp_path: Path) -> None:
    with new_lake(tmp_path / "lake") as catalog:
        catalog.create_table("db.log", pa.schema([pa.field("line", pa.string())])).append(
            pa.table({"line": ["a", "b"]})
        )
    lake = Lake(tmp_path / "lake")
    assert "has no key" in lake.error("delete-prefix", "db.log", "line=a")["message"]
    assert lake.json("delete-range", "db.log", "--on", "line", "--upper", "b")["added_delete_files_count"] == 1
    assert lake.json("head", "db.log")["rows"] == [{"line": "b"}]


def test_if_unchanged_since_rejects_concurrent_rows_in_scope(lake: Lake, tmp_path: Path) -> None:
    """CP-83: deletes and loads fail if rows were added to the scope that they delete."""
    read = str(snapshot_id(lake))
    rows = tmp_path / "rows.json"
    rows.write_text('{"id1": "A", "id2": 9, "num_cal": 9, "ts": null, "amount": null, "note": "x"}\n')
    assert lake.run("load", TABLE, str(rows)).status == 0
    keys = live_keys(lake)
    since = ("--if-unchanged-since", read)
    for command in (
        ("delete-prefix", TABLE, "id1=A"),
        ("delete-range", TABLE, "--lower", "A", "--upper", "B"),
        ("load", TABLE, str(rows), "--replace-prefix", "id1"),
        ("load", TABLE, str(rows), "--upsert"),
    ):
        run = lake.run(*command, *since)
        assert run.status != 0
        assert "ScopeChangedError" in run.stderr or "was added since" in run.stderr
    assert lake.run("load", TABLE, str(rows), *since).status == 2
    assert lake.run("delete-prefix", TABLE, "id1=A", "--dry-run", *since).status == 2
    assert live_keys(lake) == keys
    assert lake.run("delete-prefix", TABLE, "id1=B", *since).status == 0


def test_delete_ranges_from_a_file(lake: Lake, tmp_path: Path) -> None:
    """CP-86: one snapshot; an empty value of the file is an open side."""
    ranges = tmp_path / "cutoffs.csv"
    ranges.write_text("lower_id1,upper_id1,upper_id2\nA,A,1\nB,B,\n")
    before = live_keys(lake)
    assert "the 2 ranges of" in lake.run("delete-ranges", TABLE, "--from", str(ranges), "--dry-run").stdout
    assert live_keys(lake) == before
    assert lake.run("delete-ranges", TABLE, "--from", str(ranges)).status == 0
    assert live_keys(lake) == [row for row in before if row[0] == "C" or (row[0] == "A" and row[1] >= 2)]
    ranges.write_text("lower_id1,upper_id1\n,\n")
    assert lake.run("delete-ranges", TABLE, "--from", str(ranges)).status != 0


def test_metadata_dry_run_opens_no_data_file(lake: Lake, tmp_path: Path) -> None:
    """CP-88: files, bytes and rows at most; no data file is opened."""
    ranges = tmp_path / "cutoffs.csv"
    ranges.write_text("lower_id1,upper_id1\nA,B\n")
    before = live_keys(lake)
    for command in (
        ("delete-prefix", TABLE, "id1=A"),
        ("delete-range", TABLE, "--lower", "A", "--upper", "B"),
        ("delete-ranges", TABLE, "--from", str(ranges)),
    ):
        told = lake.json(*command, "--dry-run", "--metadata-only")
        assert (told["dry_run"], told["row_count_max"] >= 4, told["data_files_count"] >= 1) == (True, True, True)
        assert "none opened" in lake.run(*command, "--dry-run", "--metadata-only").stdout
        assert lake.run(*command, "--metadata-only").status == 2
    assert live_keys(lake) == before
