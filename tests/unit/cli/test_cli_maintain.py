"""The command line: maintenance jobs, health and its commands, prompts, Ctrl-C."""

from __future__ import annotations

import dataclasses
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer.main
from cli_lake import TABLE, Lake, make_lake
from maintenance_tables import keyed_table, rows
from new_lakes import new_lake

import tableformat as tf
from tableformat.cli import confirm, running
from tableformat.cli.main import app
from tableformat.maintenance.compaction.compact import CompactResult
from tableformat.maintenance.delete_files.drop_dead_deletes import DropDeadDeletesResult
from tableformat.maintenance.delete_files.merge_range_deletes import MergeRangeDeletesResult
from tableformat.maintenance.delete_files.rewrite_position_deletes import RewritePositionDeleteFilesResult
from tableformat.maintenance.expiry.expire_snapshots import ExpireResult
from tableformat.maintenance.expiry.remove_orphan_files import RemoveOrphanFilesResult
from tableformat.maintenance.health.health import TableHealth
from tableformat.maintenance.maintenance import Maintenance
from tableformat.maintenance.publish import PublishResult
from tableformat.maintenance.rewrite_manifests import RewriteManifestsResult
from tableformat.maintenance.run_jobs import JOBS, JobReport, RunResult
from tableformat.testing.table_rows import live_tuples


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "calendars")


@pytest.fixture(scope="module")
def made_ill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake, with a copy that restores it, which saves many commits."""
    directory = tmp_path_factory.mktemp("ill")
    table = keyed_table(
        directory,
        properties={
            "history.expire.max-snapshot-age-ms": "1",
            "commit.manifest-merge.enabled": "false",
            "commit.manifest.min-count-to-merge": "3",
        },
    )
    for _ in range(6):
        table.append(rows("a", range(20)))
    table.delete(where="id2 < 8", mode="scan")
    for id2 in range(9, 14):
        table.delete_prefix({"id1": "a", "id2": id2})
    for id2 in range(5):
        table.delete_prefix({"id1": "nobody", "id2": id2})
    assert table.catalog is not None
    table.catalog.close()
    shutil.copytree(directory / "lake", directory / "untouched")
    return directory


@pytest.fixture
def ill(made_ill: Path) -> Lake:
    """`db.t` needs every job: small overlapping files, deleted rows, range deletes alive and dead, old snapshots."""
    shutil.rmtree(made_ill / "lake")
    shutil.copytree(made_ill / "untouched", made_ill / "lake")
    return Lake(made_ill / "lake")


class Terminal:
    def isatty(self) -> bool:
        return True


def answer(monkeypatch: pytest.MonkeyPatch, *answers: bool) -> list[str]:
    """Simulate a terminal user who gives these answers; returns the questions that were asked."""
    asked: list[str] = []
    waiting = list(answers)

    def ask(question: str, **_options: Any) -> bool:
        asked.append(question)
        return waiting.pop(0)

    monkeypatch.setattr(confirm, "sys", type("Streams", (), {"stdin": Terminal()}))
    monkeypatch.setattr(confirm.typer, "confirm", ask)
    return asked


def keys(lake: Lake, name: str) -> list[Any]:
    with lake.table(name) as table:
        return live_tuples(table)


def snapshot_ids(lake: Lake) -> list[int]:
    """The snapshot ids in the history of `TABLE`, newest first."""
    return [each["snapshot_id"] for each in lake.json("history", TABLE)["snapshots"]]


def head(lake: Lake, name: str) -> int | None:
    with lake.table(name) as table:
        return table.snapshot_id


def names(result: type) -> set[str]:
    return {field.name for field in dataclasses.fields(result)}


def test_every_job_has_a_command_with_its_name() -> None:
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    jobs = {name for name in vars(Maintenance) if not name.startswith("_")} - {"iceberg", "branch"}
    jobs -= {"upkeep_metrics", "wait_for_upkeep"}  # of the process
    # `maintain`, `compact --dry-run` and `verify --repair`.
    jobs -= {"run", "plan_compaction", "repair"}
    assert {name.replace("_", "-") for name in jobs} | {"maintain"} <= commands
    assert {name.replace("_", "-") for name in JOBS} <= commands


class TestHealth:
    def test_suggested_commands_resolve_all_findings(self, ill: Lake) -> None:
        """MT-20"""
        before = keys(ill, "db.t")
        found = ill.json("health", "db.t")
        assert names(TableHealth) | {"clean_file_share"} == set(found)
        assert {finding["name"] for finding in found["findings"]} == {
            "small-files",
            "deleted-rows",
            "overlap",
            "keyed-deletes",
            "range-delete-files",
            "dead-deletes",
            "manifests",
            "snapshots",
        }
        for finding in found["findings"]:
            program, *words = shlex.split(finding["command"])
            assert program == "tableformat"
            run = ill.run(*words, *(["--yes"] if words[0] == "expire-snapshots" else []))
            assert (run.status, run.stderr) == (0, ""), finding
        left = ill.json("health", "db.t")
        # The jobs themselves make snapshots.
        assert {finding["name"] for finding in left["findings"]} <= {"snapshots"}
        assert (left["data_file_count"], left["delete_files"]) == (1, [])
        assert keys(ill, "db.t") == before

    def test_suggested_commands_name_catalog_and_branch(self, tmp_path: Path) -> None:
        """MT-20, MT-30"""
        table = keyed_table(tmp_path)
        table.append(rows("a", range(3)))
        for name in ("ingest", "side"):
            table.create_branch(name)
        table.set_properties(**{"tableformat.publish-target.ingest": "main"})
        lake = Lake(tmp_path / "lake")
        for name in ("ingest", "side"):
            lake.json("delete-prefix", "db.t", "id1=a", "id2=1", "--branch", name)
        elsewhere = Lake(tmp_path / "other")
        told = {
            name: elsewhere.json("health", "db.t", "--branch", name, "--catalog", lake.directory)["findings"][0]
            for name in ("ingest", "side")
        }
        start = f"tableformat --catalog {lake.directory} "
        assert told["side"]["command"] == f"{start}convert-deletes db.t --branch side"
        assert told["ingest"]["command"] == f"{start}publish db.t --source ingest --target main"
        assert lake.run(*shlex.split(told["ingest"]["command"])[1:]).status == 0
        assert ("a", 1, "x") not in keys(lake, "db.t")

    def test_large_metadata_command_is_valid_for_expire_snapshots(self, lake: Lake) -> None:
        with lake.table() as table:
            table.set_properties(comment="x" * 1_000_000)
        (finding,) = (each for each in lake.json("health", TABLE)["findings"] if each["name"] == "snapshots")
        _, *words = shlex.split(finding["command"])
        assert words[:2] == ["expire-snapshots", TABLE]
        assert lake.json(*words, "--yes")["expired_snapshots_count"] == 0


class TestCompact:
    def test_dry_run_shows_groups_reasons_and_command(self, ill: Lake) -> None:
        before = head(ill, "db.t")
        further = ["--option", "max_commits=2", "--option", "delete_file_threshold=3"]
        page = ill.run(
            "compact", "db.t", "--dry-run", "--min-input-files", "3", *further, "--where", "id1 = 'a'"
        ).stdout
        lines = page.splitlines()
        assert lines[0] == "db.t: dry run, nothing was changed."
        assert "6 files are below" in page
        assert "6 data files of 6 would become 1" in page
        where = """--where 'id1 = '"'"'a'"'"''"""
        assert lines[-1] == f"To run it: tableformat compact db.t {where} --min-input-files 3 {shlex.join(further)}"
        assert head(ill, "db.t") == before
        _, *words = shlex.split(lines[-1].removeprefix("To run it: "))
        assert ill.json(*words)["rewritten_data_files_count"] == 6

    def test_json_has_the_fields_of_the_result(self, ill: Lake) -> None:
        planned = ill.json("compact", "db.t", "--dry-run")
        assert set(planned) == names(CompactResult) | {"table"}
        (group,) = planned["plan"]["groups"]
        assert (group["kind"], group["data_file_count"], len(group["file_paths"])) == ("merge", 6, 6)
        before = keys(ill, "db.t")
        done = ill.json("compact", "db.t")
        assert (done["dry_run"], done["rewritten_data_files_count"], done["added_data_files_count"]) == (False, 6, 1)
        assert keys(ill, "db.t") == before

    def test_bounds_of_the_plan(self, ill: Lake) -> None:
        page = ill.run("compact", "db.t", "--dry-run", "--max-rewritten-bytes", "1kb").stdout
        assert page.startswith("db.t: nothing to compact; 1 more group of ")
        options = ["--option", "partial_progress=false", "--option", "drop_dead_deletes=false"]
        done = ill.json("compact", "db.t", "--max-rewritten-bytes", "1 MiB", *options)
        assert (done["commit_count"], done["removed_range_delete_files_count"]) == (1, 0)
        assert ill.json("compact", "db.t")["removed_range_delete_files_count"] > 0

    def test_order_of_the_rows(self, tmp_path: Path) -> None:
        with new_lake(tmp_path) as catalog:
            table = catalog.create_table("db.t", pa.schema([("a, b", pa.int64()), ("c", pa.int64())]))
            for number in (1, 2):
                table.append(pa.table({"a, b": [number], "c": [-number]}))
        lake = Lake(tmp_path)
        command = lake.run("compact", "db.t", "--rewrite-all", "--sort-by", "`a, b` desc, c", "--dry-run").stdout
        arguments = shlex.split(command.splitlines()[-1].partition("tableformat ")[2])
        lake.run(*arguments)
        assert lake.json("head", "db.t", "--columns", "c")["rows"] == [{"c": -2}, {"c": -1}]
        lake.run("compact", "db.t", "--rewrite-all", "--sort-by", "zorder(c, `a, b`)")
        assert lake.json("head", "db.t", "--columns", "c")["rows"] == [{"c": -2}, {"c": -1}]
        assert "unknown column 'd'" in lake.error("compact", "db.t", "--sort-by", "d")["message"]

    def test_unknown_options_and_depths_are_usage_errors(self, ill: Lake) -> None:
        run = ill.run("compact", "db.t", "--dpeth", "fold")
        assert run.status == 2
        assert "--depth" in run.stderr
        assert ill.run("compact", "db.t", "--depth", "flod").status == 2

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--target-file-size", "12xb"], "--target-file-size: '12xb' is not a size; write bytes or a unit"),
            (["--where", "id3 = 1"], "unknown column 'id3'"),
            (["--min-input-files", "0"], "min_input_files must be a whole number above 0"),
            (["--delete-ratio-threshold", "2"], "delete_ratio_threshold must be above 0 and at most 1"),
            (
                ["--option", "max-comits=2"],
                "unknown option 'max_comits' of compact --option. Did you mean 'max_commits'?",
            ),
            (["--option", "partial_progress=maybe"], "--option partial_progress: 'maybe' is not true or false."),
            (["--option", "max_commits"], "--option max_commits: '' is not a whole number."),
            (["--option", "max_file_group_size_bytes=9qb"], "--option max_file_group_size_bytes: '9qb' is not a size"),
            (["--option", "max-commits=0"], "max_commits must be a whole number above 0"),
            (["--branch", "mian"], "no branch 'mian'"),
        ],
    )
    def test_bad_options(self, ill: Lake, options: list[str], message: str) -> None:
        assert ill.error("compact", "db.t", *options)["message"].startswith(message)


class TestDeletesAndManifests:
    @pytest.mark.parametrize(
        ("command", "result", "counted", "expected"),
        [
            ("drop-dead-deletes", DropDeadDeletesResult, "removed_range_delete_files_count", 5),
            ("merge-range-deletes", MergeRangeDeletesResult, "removed_range_delete_files_count", 10),
            ("rewrite-manifests", RewriteManifestsResult, "added_manifests_count", 2),
        ],
    )
    def test_dry_run_then_job_then_no_work_left(
        self, ill: Lake, command: str, result: type, counted: str, expected: int
    ) -> None:
        before, all_keys = head(ill, "db.t"), keys(ill, "db.t")
        planned = ill.json(command, "db.t", "--dry-run")
        assert set(planned) == names(result) | {"table"}
        assert (planned["dry_run"], planned[counted], head(ill, "db.t")) == (True, expected, before)
        assert ill.run(command, "db.t", "--dry-run").stdout.startswith("db.t: dry run, nothing was changed.\n")
        assert ill.json(command, "db.t")[counted] == expected
        assert "; nothing to " in ill.run(command, "db.t").stdout
        assert keys(ill, "db.t") == all_keys

    def test_position_deletes_of_a_data_file_are_merged(self, tmp_path: Path) -> None:
        table = keyed_table(tmp_path)
        table.append(rows("a", range(5)))
        for number in (1, 3):
            table.delete(f"id2 = {number}", mode="scan")
        lake, job = Lake(tmp_path / "lake"), "rewrite-position-delete-files"
        planned = lake.json(job, "db.t", "--dry-run")
        assert set(planned) == names(RewritePositionDeleteFilesResult) | {"table"}
        assert planned["rewritten_delete_files_count"] == 2
        assert lake.json(job, "db.t", "--where", "id1 = 'b'")["rewritten_delete_files_count"] == 0
        assert lake.run(job, "db.t").stdout.startswith("db.t: position deletes rewritten.\n")
        assert "; nothing to rewrite" in lake.run(job, "db.t").stdout
        assert lake.json(job, "db.t", "--all")["added_delete_files_count"] == 1
        assert keys(lake, "db.t") == [("a", number, "x") for number in (0, 2, 4)]

    def test_unknown_spec(self, ill: Lake) -> None:
        assert ill.error("rewrite-manifests", "db.t", "--spec-id", "7")["message"].startswith("the table has no part")


class TestConvertDeletes:
    def test_only_some_files(self, tmp_path: Path) -> None:
        table = keyed_table(tmp_path)
        for id1 in "ab":
            table.append(rows(id1, range(5)))
        table.delete(where="id2 = 1")
        table.delete_prefix({"id1": "a", "id2": 2})
        table.delete_rows(pa.table({"id2": [3]}))
        lake = Lake(tmp_path / "lake")
        before = keys(lake, "db.t")
        some = lake.json("convert-deletes", "db.t", "--where", "id1 = 'a'")
        assert (some["resolved_data_files_count"], some["removed_equality_delete_files_count"]) == (1, 0)
        rest = lake.json("convert-deletes", "db.t", "--max-commits", "1")
        assert rest["removed_equality_delete_files_count"] == 2
        assert keys(lake, "db.t") == before
        assert "unknown column 'id3'" in lake.error("convert-deletes", "db.t", "--where", "id3 = 1")["message"]
        assert "max_commits" in lake.error("convert-deletes", "db.t", "--max-commits", "0")["message"]


class TestPublish:
    def test_ingest_to_main_by_default(self, tmp_path: Path) -> None:
        table = keyed_table(tmp_path)
        table.append(rows("a", range(5)))
        table.create_branch("ingest")
        lake = Lake(tmp_path / "lake")
        lake.json("delete-prefix", "db.t", "id1=a", "id2=1", "--branch", "ingest")
        planned = lake.json("publish", "db.t", "--dry-run")
        assert set(planned) == names(PublishResult) | {"table"}
        assert (planned["source"], planned["target"], len(keys(lake, "db.t"))) == ("ingest", "main", 5)
        page = lake.run("publish", "db.t", "--branch", "ingest").stdout
        assert page.startswith("db.t: ingest published.\n")
        assert "0 equality and 1 range delete files; 1 row deleted" in page
        assert keys(lake, "db.t") == [("a", number, "x") for number in (0, 2, 3, 4)]
        assert lake.run("publish", "db.t").stdout == "db.t: main already has all of ingest; nothing to publish.\n"
        assert "no branch 'ingets'" in lake.error("publish", "db.t", "--branch", "ingets")["message"]


class TestExpireSnapshots:
    def test_asks_with_the_planned_removals(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        before = snapshot_ids(lake)
        asked = answer(monkeypatch, False, True)
        lake.json("tag", TABLE, "first", "--delete")
        refused = lake.run("expire-snapshots", TABLE, "--older-than", "0s")
        assert (refused.status, refused.stdout, refused.stderr) == (1, "", "Nothing was changed.\n")
        assert asked[0].startswith("Expire 2 snapshots of db.calendars and free ")
        assert snapshot_ids(lake) == before
        run = lake.run("expire-snapshots", TABLE, "--older-than", "0s")
        assert run.stdout.startswith("db.calendars: snapshots expired.\nsnapshots  2\n")
        assert snapshot_ids(lake) == before[:1]

    def test_dry_run_ids_and_retention(self, lake: Lake) -> None:
        planned = lake.json("expire-snapshots", TABLE, "--older-than", "0s", "--dry-run")
        assert set(planned) == names(ExpireResult) | {"table"}
        assert planned["expired_snapshots_count"] == 1, "the tag keeps the first"
        options = ["--older-than", "0s", "--retain-last", "2", "--dry-run"]
        assert lake.json("expire-snapshots", TABLE, *options)["expired_snapshots_count"] == 0
        middle = lake.json("history", TABLE)["snapshots"][1]["snapshot_id"]
        done = lake.json("expire-snapshots", TABLE, "--snapshot-id", middle, "--yes", "--keep-files")
        assert (done["expired_snapshot_ids"], done["freed_bytes"]) == ([middle], 0)

    def test_without_a_terminal_it_says_how_to_confirm(self, lake: Lake) -> None:
        before = snapshot_ids(lake)
        run = lake.run("expire-snapshots", TABLE, "--older-than", "0s")
        assert run.status == 2
        assert "--yes" in run.stderr
        assert snapshot_ids(lake) == before


class TestRemoveOrphanFiles:
    def test_asks_with_the_planned_removals(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        with lake.table() as table:
            orphan = Path(table.location.removeprefix("file://"), "data", "left.parquet")
        orphan.write_bytes(b"left")
        recent = ["remove-orphan-files", TABLE, "--older-than", "0s", "--allow-recent"]
        planned = lake.json(*recent, "--dry-run")
        assert set(planned) == names(RemoveOrphanFilesResult) | {"table"}
        assert [Path(location).name for location in planned["orphan_file_locations"]] == ["left.parquet"]
        assert "--yes" in lake.run(*recent).stderr
        asked = answer(monkeypatch, False, True)
        assert lake.run(*recent).status == 1
        assert asked == ["Remove 1 file of 4 B that db.calendars does not reference?"]
        assert orphan.exists()
        page = lake.run(*recent).stdout
        assert page.startswith("db.calendars: orphan files removed.\n")
        assert page.endswith("left.parquet\n")
        assert not orphan.exists()
        assert "pass --allow-recent" in lake.error(*recent[:-1], "--yes")["message"]


def test_apply_retention(tmp_path: Path) -> None:
    """MT-107: asks first, shows the rules, and deletes nothing in a dry run."""
    lake = Lake(tmp_path / "lake")
    with new_lake(lake.directory) as catalog:
        days = pa.table({"day": pa.array([0, 100_000], pa.date32())})
        table = catalog.create_table("db.days", days.schema, properties={"tableformat.retain": "day: 30 days"})
        table.append(days)
    tried = lake.json("apply-retention", "db.days", "--dry-run")
    assert [(rule["rule"], rule["row_count_max"]) for rule in tried["rules"]] == [("day: 30 days", 2)]
    assert lake.run("apply-retention", "db.days").status == 2
    assert "day: 30 days" in lake.run("apply-retention", "db.days", "--yes").stdout
    with tf.open_catalog(str(lake.directory)) as catalog:
        assert catalog.load_table("db.days").scan().count() == 1


class TestMaintain:
    def test_all_jobs_in_order(self, ill: Lake) -> None:
        """MT-60"""
        before = keys(ill, "db.t")
        planned = ill.json("maintain", "db.t", "--dry-run")
        assert set(planned) == names(RunResult) | {"table"}
        assert [set(report) for report in planned["jobs"]] == [names(JobReport)] * len(JOBS)
        run = ill.json("maintain", "db.t", "--yes", "--time-budget", "10m", "--byte-budget", "1gb")
        assert [report["job"] for report in run["jobs"]] == list(JOBS)
        status = {report["job"]: report["status"] for report in run["jobs"]}
        left_out = dict.fromkeys(("publish", "advance_window", "apply_retention"), "skipped")
        assert status == dict.fromkeys(JOBS, "done") | left_out
        assert next(job for job in run["jobs"] if job["job"] == "compact")["result"]["plan"]["groups"]
        assert keys(ill, "db.t") == before

    def test_asks_before_removing_files(self, ill: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "--yes" in ill.run("maintain", "db.t").stderr
        before = head(ill, "db.t")
        asked = answer(monkeypatch, False)
        assert ill.run("maintain", "db.t").status == 1
        assert asked == ["Maintain db.t? This expires old snapshots and removes unneeded files."]
        assert head(ill, "db.t") == before

    def test_failed_job_is_reported_with_status_1(self, ill: Lake) -> None:
        with ill.table("db.t") as table:
            table.set_properties(**{"gc.enabled": "false"})
        run = ill.run("maintain", "db.t", "--only", "rewrite-manifests,remove-orphan-files", "--yes")
        assert run.status == 1
        assert "gc.enabled" in run.stdout


class TestUpgrade:
    def test_asks_and_upgrades(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = answer(monkeypatch, False)
        assert lake.run("upgrade", TABLE).status == 1
        assert asked == ["Upgrade db.calendars from version 2 to 3? This cannot be undone."]
        assert lake.json("upgrade", TABLE, "--yes") == {
            "table": TABLE,
            "previous_format_version": 2,
            "format_version": 3,
        }
        assert lake.run("upgrade", TABLE).stdout == "db.calendars: already has version 3.\n"


class TestInterrupt:
    @staticmethod
    def interrupt_at(monkeypatch: pytest.MonkeyPatch, done: int) -> None:
        """Ctrl-C once a job has done so much."""

        @contextmanager
        def interrupting(_console: object) -> Iterator[Any]:
            def progress(step: int, total: int, what: str) -> None:
                if step >= done:
                    raise KeyboardInterrupt

            yield progress

        monkeypatch.setattr(running, "drawn_progress", interrupting)

    def test_interrupted_job_reports_what_was_committed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """MT-47"""
        table = keyed_table(tmp_path, partition_by=("id1",), properties={"write.target-file-size-bytes": "1"})
        for _ in range(2):
            table.append(pa.concat_tables([rows("a", range(10)), rows("b", range(10))], promote_options="none"))
        lake = Lake(tmp_path / "lake")
        before = keys(lake, "db.t")
        self.interrupt_at(monkeypatch, 30)
        error = lake.run("compact", "db.t", "--rewrite-all", "--output", "json")
        assert (error.status, error.stdout) == (130, "")
        committed = head(lake, "db.t")
        assert f"interrupted: db.t got snapshots {committed} (replace) of branch main since" in error.stderr
        assert keys(lake, "db.t") == before
        again = lake.json("remove-orphan-files", "db.t", "--older-than", "0s", "--allow-recent", "--dry-run")
        assert again["orphan_file_locations"] == [], "uncommitted work was discarded"

    @pytest.mark.parametrize("command", ["compact", "convert-deletes"])
    def test_nothing_committed(self, ill: Lake, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
        before = head(ill, "db.t")
        self.interrupt_at(monkeypatch, 0)
        run = ill.run(command, "db.t")
        assert run.status == 130
        assert run.stderr == "Error: interrupted: nothing was committed; db.t is unchanged.\n"
        assert head(ill, "db.t") == before


def test_branch_jobs_do_not_change_main(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    table.append(rows("a", range(10)))
    table.create_branch("side")
    lake = Lake(tmp_path / "lake")
    lake.json("delete-prefix", "db.t", "id1=a", "id2=1", "--branch", "side")
    main = head(lake, "db.t")
    assert lake.json("convert-deletes", "db.t", "--branch", "side")["removed_range_delete_files_count"] == 1
    assert head(lake, "db.t") == main


def test_table_paths_are_read_only(lake: Lake) -> None:
    with lake.table() as table:
        location = table.location.removeprefix("file://")
    assert lake.error("compact", location)["type"] == "UnsupportedFeatureError"
    assert lake.json("health", location)["data_file_count"] == 2
