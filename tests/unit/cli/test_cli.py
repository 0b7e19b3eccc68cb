"""The command line: inspection, reading, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_lake import TABLE, Lake, calendar_rows, make_lake
from long_forms import every
from typer.testing import CliRunner

import tableformat as tf
from tableformat.cli import main
from tableformat.cli.main import app, globals_first
from tableformat.cli.session import Session

TABLE_PATH = Path("db", "calendars")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Only for commands that change nothing."""
    return make_lake(tmp_path_factory.mktemp("cli") / "lake")


@pytest.fixture
def oslo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time that is not UTC."""
    monkeypatch.setenv("TZ", "Europe/Oslo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class TestLs:
    def test_prints_one_identifier_a_line(self, lake: Lake) -> None:
        assert lake.run("ls").stdout == "db.calendars\ndb.empty\n"

    def test_json_names_namespaces_and_tables(self, lake: Lake) -> None:
        assert lake.json("ls", "db") == {
            "namespaces": ["db"],
            "tables": [{"identifier": "db.calendars"}, {"identifier": "db.empty"}],
        }

    def test_unknown_namespace_names_the_nearest(self, lake: Lake) -> None:
        assert lake.error("ls", "dbb") == {
            "type": "NamespaceNotFoundError",
            "message": "no namespace 'dbb'. Did you mean 'db'?",
        }

    def test_long_option_shows_figures(self, lake: Lake) -> None:
        lines = lake.run("ls", "-l").stdout.splitlines()
        assert lines[0].split() == ["table", "rows", "files", "size", "deletes", "committed", "at"]
        assert lines[2].split()[:3] == ["db.calendars", "<=", "12"]
        assert lines[3].split() == ["db.empty", "0", "0", "0", "B", "0", "never"]
        tables = lake.json("ls", "--long")["tables"]
        assert [(table["identifier"], table["record_count"]) for table in tables] == [(TABLE, 12), ("db.empty", 0)]


class TestShow:
    def test_shows_schema_key_snapshot_and_files(self, lake: Lake) -> None:
        shown = lake.run("show", TABLE, columns=80).stdout
        assert "key           id1, id2, num_cal\n" in shown
        assert "partitions    bucket(4, id1)\n" in shown
        assert "rows          at most 12: deletes are applied when rows are read\n" in shown
        assert "1 equality (1 key, " in shown
        assert "1 range (1 span, " in shown
        assert " 3  num_cal  int                   key 3\n" in shown
        assert "[bold]me" in shown
        assert max(len(line) for line in shown.splitlines()) <= 80

    def test_json_has_numbers_as_numbers(self, lake: Lake) -> None:
        summary = lake.json("show", TABLE)
        with lake.table() as table:
            assert summary["snapshot"]["snapshot_id"] == table.snapshot_id
        assert summary["columns"][1] == {
            "field_id": 2,
            "name": "id2",
            "type": "long",
            "required": True,
            "key_position": 2,
            "doc": None,
        }
        assert (summary["record_count"], summary["live_row_count"]) == (12, None)
        assert [(kind["kind"], kind["record_count"]) for kind in summary["delete_files"]] == [
            ("equality", 1),
            ("range", 1),
        ]
        assert [ref["name"] for ref in summary["refs"]] == ["first", "main"]

    def test_tag_shows_the_table_before_the_deletes(self, lake: Lake) -> None:
        summary = lake.json("show", TABLE, "--tag", "first")
        assert (summary["live_row_count"], summary["delete_files"]) == (12, [])

    def test_table_without_snapshot(self, lake: Lake) -> None:
        assert "snapshot      none yet\n" in lake.run("show", "db.empty").stdout
        assert lake.json("show", "db.empty")["snapshot"] is None


class TestPaths:
    def test_table_directory_and_metadata_file_need_no_catalog(self, lake: Lake) -> None:
        elsewhere = Lake(Path("nowhere"))
        directory = lake.directory / TABLE_PATH
        with lake.table() as table:
            metadata_file = table.iceberg.metadata_location.removeprefix("file://")
        for path in (directory, metadata_file):
            assert elsewhere.json("show", path)["record_count"] == 12
            rows = elsewhere.json("head", path, "-n", "100")["rows"]
            assert sorted((row["id1"], row["num_cal"]) for row in rows) == [
                *(("A", number) for number in (2, 3)),
                *(("B", number) for number in (0, 2, 3)),
                *(("C", number) for number in range(4)),
            ]

    def test_directory_without_a_table(self, lake: Lake) -> None:
        error = lake.error("files", lake.directory / "db" / "nothing")
        assert error["type"] == "TableNotFoundError"
        assert "has no metadata file" in error["message"]

    def test_table_opened_by_path_is_read_only(self, lake: Lake) -> None:
        error = lake.error("delete-prefix", lake.directory / TABLE_PATH, "id1=A")
        assert error["type"] == "UnsupportedFeatureError"


class TestHistory:
    def test_json_and_limit(self, lake: Lake) -> None:
        document = lake.json("history", TABLE, "-n", "1")
        with lake.table() as table:
            assert [entry["snapshot_id"] for entry in document["snapshots"]] == [table.snapshot_id]
        assert document["snapshots"][0]["summary"]["added-equality-delete-files"] == "1"

    def test_empty_table_and_unknown_branch(self, lake: Lake) -> None:
        assert lake.run("history", "db.empty").stdout == "No snapshots yet.\n"
        assert lake.error("history", TABLE, "--branch", "mian")["message"] == "no branch 'mian'. Did you mean 'main'?"


class TestFilesAndDeletes:
    def test_deletes_are_listed_oldest_first_with_contents(self, lake: Lake) -> None:
        document = lake.json("deletes", TABLE)
        assert [(entry["kind"], entry["columns"], entry["sequence_number"]) for entry in document["delete_files"]] == [
            ("range", ["id1", "id2", "num_cal"], 2),
            ("equality", ["note", "id1"], 3),
        ]
        assert document["delete_files"][0]["partition"] == "all"
        shown = lake.run("deletes", TABLE).stdout
        assert "id1 = 'A', id2 = 0, num_cal" in shown
        assert "note = '[red]line 1', id1 = 'B'" in shown

    def test_deletes_of_a_file_by_path_suffix(self, lake: Lake) -> None:
        files = [file["path"] for file in lake.json("files", TABLE)["files"]]
        with lake.table() as table:
            for path in files:
                expected = table.inspect.deletes_of(path)["file_path"].to_pylist()
                document = lake.json("deletes", TABLE, "--of", path.rpartition("/data/")[2])
                assert document["data_file"] == path
                assert sorted(entry["path"] for entry in document["delete_files"]) == sorted(expected)

    def test_deletes_of_an_unknown_file(self, lake: Lake) -> None:
        error = lake.error("deletes", TABLE, "--of", "x.parquet")
        assert error["type"] == "InvalidArgumentError"
        assert "'x.parquet' is not a data file of this snapshot." in error["message"]

    def test_empty_result_is_reported_on_stderr(self, lake: Lake) -> None:
        for command, message in (
            ("files", "db.empty has no data files.\n"),
            ("deletes", "db.empty has no delete files.\n"),
        ):
            run = lake.run(command, "db.empty")
            assert (run.status, run.stdout, run.stderr) == (0, "", message)
        assert lake.json("files", "db.empty")["files"] == []


class TestHead:
    def test_json_rows_have_all_deletes_applied(self, lake: Lake) -> None:
        document = lake.json("head", TABLE, "-n", "100", "--where", "id1 <> 'C'", "--columns", "id1,num_cal")
        kept = [("A", 2), ("A", 3), ("B", 0), ("B", 2), ("B", 3)]
        assert sorted((row["id1"], row["num_cal"]) for row in document["rows"]) == kept
        assert document["columns"] == [{"name": "id1", "type": "string"}, {"name": "num_cal", "type": "int"}]

    def test_values_without_json_type_are_text(self, lake: Lake) -> None:
        where = "id1 = 'C' AND num_cal = 3"
        assert lake.json("head", TABLE, "--where", where)["rows"] == [
            {
                "id1": "C",
                "id2": 1,
                "num_cal": 3,
                "ts": "2026-01-04T12:00:00+00:00",
                "amount": "12.50",
                "note": None,
            }
        ]

    def test_text_keeps_brackets_and_shows_null(self, lake: Lake) -> None:
        lines = lake.run("head", TABLE, "--where", "id1 = 'C'", "--columns", "num_cal,note").stdout.splitlines()
        assert lines[:2] == ["num_cal  note", "    int  string"]
        assert lines[3:] == [f"      {number}  [red]line {number}" for number in range(3)] + ["      3  NULL"]

    def test_time_travel_by_snapshot_tag_and_time(self, lake: Lake) -> None:
        oldest = lake.json("history", TABLE)["snapshots"][-1]
        for choice in (
            ("--snapshot", oldest["snapshot_id"]),
            ("--tag", "first"),
            ("--as-of", oldest["made_current_at"]),
            ("--as-of", oldest["made_current_at"], "--branch", "main"),
        ):
            assert lake.json("head", TABLE, "-n", "100", *choice)["row_count"] == 12

    @pytest.mark.usefixtures("oslo")
    def test_printed_local_times_are_accepted_as_input(self, lake: Lake) -> None:
        oldest = lake.json("history", TABLE)["snapshots"][-1]["made_current_at"]
        assert oldest[-6:] in ("+01:00", "+02:00")
        assert lake.json("head", TABLE, "-n", "100", "--as-of", oldest[:-6])["row_count"] == 12

    @pytest.mark.parametrize(
        ("arguments", "kind", "message"),
        [
            (["--columns", "nots"], "UnknownColumnError", "unknown column 'nots' in columns. Did you mean 'note'?"),
            (["--where", "id3 = 1"], "UnknownColumnError", "unknown column 'id3' in the filter. Did you mean 'id2'?"),
            (["--where", "id1 ="], "InvalidPredicateError", ""),
            (["--snapshot", "5"], "SnapshotNotFoundError", "no snapshot 5; the table retains 3 other snapshots."),
            (["--tag", "frist"], "SnapshotNotFoundError", "no tag 'frist'. Did you mean 'first'?"),
            (["--as-of", "2020-01-01"], "SnapshotNotFoundError", "branch 'main' had no snapshot at 20"),
            (["--as-of", "soon"], "InvalidArgumentError", "'soon' is not a time: write ISO 8601"),
            (["--tag", "first", "--snapshot", "5"], "InvalidArgumentError", "pass only one of --snapshot, --tag"),
            (
                ["--tag", "first", "--branch", "main"],
                "InvalidArgumentError",
                "--branch can only be combined with --as-of",
            ),
        ],
    )
    def test_bad_input(self, lake: Lake, arguments: list[str], kind: str, message: str) -> None:
        error = lake.error("head", TABLE, *arguments)
        assert error["type"] == kind
        assert error["message"].startswith(message)

    def test_non_numeric_argument_is_a_usage_error(self, lake: Lake) -> None:
        assert lake.run("head", TABLE, "-n", "many").status == 2
        assert lake.run("head", TABLE, "--snapshot", "first").status == 2


class TestQuery:
    def test_tables_are_found_with_and_without_the_catalog_name(self, lake: Lake) -> None:
        for name in (TABLE, f"lake.{TABLE}"):
            document = lake.json("query", f"SELECT id1, count(*) AS n FROM {name} GROUP BY id1 ORDER BY id1")
            assert document == {
                "columns": [{"name": "id1", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}],
                "rows": [{"id1": "A", "n": 2}, {"id1": "B", "n": 3}, {"id1": "C", "n": 4}],
                "row_count": 3,
                "is_truncated": False,
            }

    def test_reached_limit_is_reported(self, lake: Lake) -> None:
        run = lake.run("query", "SELECT i FROM range(500) r(i)")
        assert run.stdout.splitlines()[3:] == [f"{number:>6}" for number in range(100)]
        assert run.stderr == "The first 100 rows; --limit N prints more.\n"
        document = lake.json("query", "SELECT i FROM range(500) r(i)", "--limit", "2")
        assert (document["rows"], document["is_truncated"]) == ([{"i": 0}, {"i": 1}], True)

    def test_json_has_all_rows_and_exact_limit_is_not_truncated(self, lake: Lake) -> None:
        document = lake.json("query", "SELECT i FROM range(25000) r(i)")
        assert [row["i"] for row in document["rows"]] == list(range(25_000))
        assert lake.json("query", "SELECT i FROM range(20000) r(i)", "-n", "20000")["is_truncated"] is False

    def test_no_rows(self, lake: Lake) -> None:
        run = lake.run("query", "SELECT * FROM db.empty")
        assert (run.status, run.stdout.splitlines()[0], run.stderr) == (0, "    id", "No rows.\n")
        assert lake.json("query", "SELECT * FROM db.empty")["rows"] == []

    def test_time_travel(self, lake: Lake) -> None:
        with tf.open_catalog(str(lake.directory)) as catalog:
            history = catalog.load_table(TABLE).history()
        first, moment = history["snapshot_id"][0].as_py(), history["made_current_at"][0].as_py().isoformat()
        count = f"SELECT count(*) AS n FROM {TABLE}"
        (before,) = lake.json("query", f"{count} AT (VERSION => {first})")["rows"]
        (now,) = lake.json("query", count)["rows"]
        assert before != now
        for option in (("--snapshot", str(first)), ("--as-of", moment)):
            assert lake.json("query", count, *option)["rows"] == [before]
        assert lake.json("query", count, "--branch", "main")["rows"] == [now]
        assert "no tag 'gone'" in lake.error("query", count, "--tag", "gone")["message"]
        assert "each chooses" in lake.error("query", count, "--tag", "gone", "--snapshot", "1")["message"]

    @pytest.mark.parametrize(
        "sql",
        [
            f"DELETE FROM {TABLE}",
            f"UPDATE lake.{TABLE} SET num_cal = 1",
            f"INSERT INTO {TABLE} SELECT * FROM {TABLE}",
            "CREATE TABLE db.made AS SELECT 1 AS a",
            "SELECT 1; CREATE TABLE made AS SELECT 1 AS a",
        ],
    )
    def test_statement_that_changes_the_catalog_is_rejected(self, lake: Lake, sql: str) -> None:
        """DuckDB would create the table in memory, and it would be gone at the end of the command."""
        error = lake.error("query", sql)
        assert "`query` and `shell`" in error["message"]
        assert lake.run("ls").stdout == "db.calendars\ndb.empty\n"

    def test_temporary_tables_are_visible_to_later_statements(self, lake: Lake) -> None:
        done = lake.json("query", "CREATE TEMP TABLE x AS SELECT 1 AS a; INSERT INTO x VALUES (2); FROM x")
        assert done["rows"] == [{"a": 1}, {"a": 2}]

    def test_namespace_named_like_the_attached_catalog(self, tmp_path: Path) -> None:
        with tf.open_catalog(str(tmp_path / "here")) as catalog:
            catalog.create_namespace("lake")
            catalog.create_table("lake.t", calendar_rows("A").schema, key=["id1"]).append(calendar_rows("A"))
        assert Lake(tmp_path / "here").json("query", "SELECT count(*) AS n FROM lake.t")["rows"] == [{"n": 4}]


class TestExplain:
    def test_explains_each_file_with_its_reason(self, lake: Lake) -> None:
        shown = lake.run("explain", TABLE, "--where", "id1 = 'B'", columns=100).stdout
        assert shown.startswith("Scan of db.calendars where id1 = 'B'\n")
        assert "ruled out by partition" in shown
        assert "partial" in shown

    def test_json_has_every_file_with_its_deletes(self, lake: Lake) -> None:
        document = lake.json("explain", TABLE, "--where", "id1 = 'B'", "--columns", "note")
        assert document["where"] == "id1 = 'B'"
        assert document["columns"] == ["note"]
        assert [delete["kind"] for file in document["files"] for delete in file["deletes"]] == ["equality"]

    def test_analyze_reads_the_rows(self, lake: Lake) -> None:
        shown = lake.run("explain", TABLE, "--analyze", columns=100).stdout
        assert "drop deleted rows" in shown
        document = lake.json("explain", TABLE, "--analyze")
        row_count = lake.json("query", f"SELECT count(*) AS n FROM {TABLE}")["rows"][0]["n"]
        assert document["steps"][-1]["row_count"] == row_count

    def test_bad_filter(self, lake: Lake) -> None:
        assert lake.error("explain", TABLE, "--where", "idd1 = 'B'")["type"] == "UnknownColumnError"


class TestCatalogOption:
    def test_mistyped_directory_is_an_error_and_is_not_created(self, tmp_path: Path) -> None:
        error = Lake(tmp_path / "lkae").error("ls")
        assert error["type"] == "CatalogNotFoundError"
        assert f"the directory {tmp_path / 'lkae'} does not exist" in error["message"]
        assert list(tmp_path.iterdir()) == []

    def test_directory_without_a_catalog_stays_empty(self, tmp_path: Path) -> None:
        assert "has no catalog.db" in Lake(tmp_path).error("ls")["message"]
        assert list(tmp_path.iterdir()) == []

    def test_unknown_name(self) -> None:
        assert Lake(Path("prdo")).error("ls")["message"].startswith("no catalog 'prdo' in PyIceberg's configuration")

    def test_lake_directory_is_the_default(self, lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("TABLEFORMAT_CATALOG", raising=False)
        monkeypatch.chdir(lake.directory.parent)
        assert CliRunner().invoke(app, ["ls"]).stdout == "db.calendars\ndb.empty\n"
        monkeypatch.chdir(tmp_path)
        result = CliRunner().invoke(app, ["ls"])
        assert result.exit_code == 1
        assert "no catalog was given, and lake/ does not contain one." in result.stderr

    def test_global_options_may_precede_or_follow_the_command(self, lake: Lake) -> None:
        here = ["--catalog", str(lake.directory)]
        first = CliRunner().invoke(app, [*here, "-o", "json", "ls"])
        last = CliRunner().invoke(app, ["ls", "--output=json", *here])
        assert json.loads(first.stdout) == json.loads(last.stdout)

    def test_json_option_is_short_for_output_json(self, lake: Lake) -> None:
        long = lake.run("ls", "--output", "json")
        assert [lake.run("ls", "--json"), lake.run("--json", "ls")] == [long, long]

    def test_arguments_after_double_dash_are_not_options(self) -> None:
        assert globals_first(["head", "t", "-o", "json", "--", "-o"]) == ["-o", "json", "head", "t", "--", "-o"]

    def test_bad_option_of_the_catalog(self, lake: Lake) -> None:
        assert lake.run("ls", "--catalog-option", "s3.endpoint").status == 2
        assert lake.error("ls", "--catalog-option", "wharehouse=x")["type"] == "UnknownOptionError"


class TestErrors:
    def test_text_error_is_one_line_without_a_traceback(self, lake: Lake) -> None:
        run = lake.run("show", "db.calendar", columns=40)
        assert (run.status, run.stdout) == (1, "")
        assert run.stderr == "Error: no table 'db.calendar'. Did you mean 'db.calendars'?\n"

    def test_debug_option_shows_the_traceback(self, lake: Lake) -> None:
        environment = {"TABLEFORMAT_CATALOG": str(lake.directory)}
        result = CliRunner(env=environment).invoke(app, ["show", "db.calendar", "--debug"])
        assert isinstance(result.exception, tf.errors.TableNotFoundError)

    def test_corrupt_data_file_is_named(self, tmp_path: Path) -> None:
        lake = make_lake(tmp_path / "lake")
        broken = lake.json("files", TABLE)["files"][0]["path"]
        Path(broken.removeprefix("file://")).write_bytes(b"PAR1 no more")
        error = lake.error("head", TABLE, "-n", "100")
        assert error["type"] == "CorruptFileError"
        assert error["message"].startswith(broken)
        assert broken.rpartition("/")[2] in lake.run("query", f"SELECT * FROM {TABLE}").stderr

    def test_missing_command_prints_help(self) -> None:
        result = CliRunner().invoke(app, [])
        assert result.exit_code == 2
        assert "convert-deletes" in result.output

    def test_version(self) -> None:
        assert CliRunner().invoke(app, ["--version"]).stdout.startswith("tableformat 0.")


class TestProcess:
    def test_console_script(self, lake: Lake) -> None:
        script = Path(sys.executable).with_name("tableformat")
        run = subprocess.run(
            [script, "--catalog", lake.directory, "ls", "-o", "json"], capture_output=True, text=True, check=True
        )
        assert [table["identifier"] for table in json.loads(run.stdout)["tables"]] == ["db.calendars", "db.empty"]
        assert run.stderr == ""

    def test_closed_pipe_is_not_an_error(self, lake: Lake) -> None:
        sql = "SELECT * FROM range(300000)"
        command = [sys.executable, "-m", "tableformat.cli", "--catalog", lake.directory, "query", sql, "-o", "json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        with process:
            process.stdout.read(10)
            process.stdout.close()
            assert process.stderr.read() == b""

    def test_main_module_does_not_import_heavy_packages(self) -> None:
        # The package itself is stood in for: what it imports is not the command line's matter.
        package = Path(tf.__file__).parent
        code = (
            "import sys, types\n"
            "package = types.ModuleType('tableformat')\n"
            f"package.__path__ = [{str(package)!r}]\n"
            "sys.modules['tableformat'] = package\n"
            "import tableformat.cli.main\n"
            "print([name for name in ('pyarrow', 'numpy', 'duckdb', 'pyiceberg', 'pyspark') if name in sys.modules])\n"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
        assert run.stdout == "[]\n"


@pytest.mark.parametrize("words", [("ls",), ("show", TABLE), ("history", TABLE), ("head", TABLE)], ids=" ".join)
def test_read_commands_do_not_import_pandas_or_operations(lake: Lake, words: tuple[str, ...]) -> None:
    """Decision 37: what a person waits for."""
    code = (
        "import atexit, sys\n"
        "from tableformat.cli.main import run\n"
        "unwanted = ('pandas', 'duckdb', 'sqlglot', 'tableformat.operations.staging', 'tableformat.cli.compaction')\n"
        "told = lambda: print([name for name in unwanted if name in sys.modules], file=sys.stderr)\n"
        "atexit.register(told)\n"
        f"sys.argv = ['tableformat', *{words!r}]\n"
        "run()\n"
    )
    environment = {**os.environ, "TABLEFORMAT_CATALOG": str(lake.directory)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert run.stderr == "[]\n"


def test_every_command_is_defined() -> None:
    """The table of commands names their functions as text."""
    made = main._Commands()
    assert [made[name].name for name in made] == [*main._COMMANDS]


def test_ctrl_c_is_reported(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if there is nothing else to report, such as a commit; as JSON if the caller requested JSON."""

    def interrupted(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "table", interrupted)
    done = lake.run("history", TABLE)
    assert (done.status, done.stdout, done.stderr) == (130, "", "Error: interrupted.\n")
    done = lake.run("history", TABLE, "--output", "json")
    assert json.loads(done.stderr) == {"error": {"type": "KeyboardInterrupt", "message": "interrupted."}}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", every(4, [["layers", "--help"], ["--help"], ["--version"], []]))
def test_failing_help_output_is_reported_without_traceback(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "tableformat.cli", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("closed", every(2, [(1,), (2,), (0, 1, 2)]))
def test_closed_standard_streams_are_ignored(lake: Lake, closed: tuple[int, ...]) -> None:
    """`>&-`: what is printed went to the next file that was opened, or was an AttributeError."""

    def close() -> None:
        for number in closed:
            os.close(number)

    command = [sys.executable, "-m", "tableformat.cli", "--catalog", str(lake.directory), "history", TABLE]
    done = subprocess.run(command, capture_output=True, preexec_fn=close, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (done.stdout == b"") == (1 in closed)
