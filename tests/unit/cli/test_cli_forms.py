"""Forms of input and output: help with examples, formats of rows, SQL from standard input, names of jobs."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer.main
from cli_lake import TABLE, Lake, make_lake
from new_lakes import new_lake
from typer.testing import CliRunner

import tableformat as tf
from tableformat.cli.main import _COMMANDS, app, globals_first


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make_lake(tmp_path_factory.mktemp("lake"))


def invoked(lake: Lake, *arguments: str, stdin: str | None = None) -> Any:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["--catalog", str(lake.directory), *arguments], input=stdin)


def commands() -> list[tuple[str, Any]]:
    group: Any = typer.main.get_command(app)
    found = [(name, group.get_command(None, name)) for name in _COMMANDS]
    inner = [
        (f"corpus {name}", each) for command in found for name, each in getattr(command[1], "commands", {}).items()
    ]
    return [each for each in found if each[0] != "corpus"] + inner


def is_global(word: str) -> bool:
    return globals_first([word]) == ["--output", word.removeprefix("--")]


@pytest.mark.parametrize(("name", "command"), commands(), ids=[name for name, _ in commands()])
def test_a_command_has_an_example_that_it_accepts(
    name: str, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("january/*.parquet", "cutoffs.csv", "events.jsonl", "secret.txt", "ann.json"):
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).touch()
    example = re.search(r"Example: (.*)", command.help)
    assert example, name
    program, *words = [word for word in shlex.split(example[1]) if not is_global(word)]
    assert [program, *words[: len(name.split())]] == ["tableformat", *name.split()]
    command.make_context(name, words[len(name.split()) :])


def test_help_prints_types_of_options_with_a_value_only() -> None:
    shown = CliRunner().invoke(app, ["compact", "--help"], env={"COLUMNS": "120"}).output
    assert "<bool>" not in shown
    assert "<str>" not in shown
    assert "SIZE" in shown


def test_rows_are_printed_as_csv_markdown_and_json_lines(lake: Lake) -> None:
    first = "SELECT 'a|b' AS t, NULL AS n, 1.5::DECIMAL(4, 2) AS d, [1, 2] AS l"
    query = f"{first} UNION ALL SELECT 'x,y', 1, 2, [3] ORDER BY t"
    text = invoked(lake, "query", query, "--csv").stdout
    assert list(csv.reader(io.StringIO(text))) == [
        ["t", "n", "d", "l"],
        ["a|b", "", "1.50", "[1, 2]"],
        ["x,y", "1", "2.00", "[3]"],
    ]
    assert invoked(lake, "query", query, "--markdown").stdout.splitlines() == [
        "| t | n | d | l |",
        "| --- | --- | --- | --- |",
        "| a\\|b |  | 1.50 | [1, 2] |",
        "| x,y | 1 | 2.00 | [3] |",
    ]
    lines = invoked(lake, "query", query, "--ndjson").stdout.splitlines()
    assert json.loads(lines[0]) == {"t": "a|b", "n": None, "d": "1.50", "l": [1, 2]}
    whole = invoked(lake, "query", "SELECT * FROM range(300)", "--output", "csv").stdout
    assert len(whole.splitlines()) == 301, "a file has all rows, a screen the first hundred"
    assert len(invoked(lake, "head", TABLE, "-n", "2", "--csv").stdout.splitlines()) == 3


def test_a_format_of_rows_is_refused_by_commands_without_rows(lake: Lake) -> None:
    run = invoked(lake, "show", TABLE, "--csv")
    assert run.exit_code == 2
    assert "csv is a format of head, query" in " ".join(run.output.split())


def test_sql_comes_from_standard_input_and_errors_point_into_it(lake: Lake) -> None:
    run = invoked(lake, "query", "-", "--csv", stdin=f"SELECT count(*) AS n\nFROM {TABLE}")
    assert run.stdout.splitlines()[0] == "n"
    run = invoked(lake, "query", "-", stdin=f"SELECT *\nFROM {TABLE} WHER x")
    pointed = run.stderr.splitlines()
    assert pointed[0].startswith("Error: Parser Error: syntax error")
    assert pointed[2].startswith("LINE 2: ")
    assert pointed[3].strip() == "^"


def test_changes_begin_with_their_type_on_every_screen(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake")
    assert invoked(lake, "changes", TABLE, "--csv").stdout.startswith("_change_type,id1,")
    assert invoked(lake, "changes", TABLE, "--columns", "id1", "--csv").stdout.startswith("id1\n")
    narrow = CliRunner().invoke(app, ["--catalog", str(lake.directory), "changes", TABLE], env={"COLUMNS": "50"})
    assert narrow.stdout.startswith("_change_type")


def test_history_names_jobs_and_states_that_no_row_changed(tmp_path: Path) -> None:
    """FM-18"""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("v", pa.string())]), key=["id"])
    for number in range(2):
        table.append(pa.table({"id": [number, number + 2], "v": ["a", "b"]}))
    table.upsert({"id": 1, "v": "c"})
    table.maintenance.convert_deletes()
    table.maintenance.compact(rewrite_all=True)
    table.maintenance.rewrite_manifests()
    lake = Lake(tmp_path / "lake")
    told = [line.partition("  ")[2].strip() for line in invoked(lake, "history", "db.t").stdout.splitlines()[2:]]
    assert any("compact: no row changed, 3 data files became 1" in line for line in told)
    assert any("convert_deletes: no row changed, +1 position delete, -1 delete" in line for line in told)
    assert any("overwrite: +1 row, +1 equality delete" in line for line in told)
    jobs = [entry["job"] for entry in json.loads(invoked(lake, "history", "db.t", "--json").stdout)["snapshots"]]
    assert {"compact", "convert_deletes", None} <= set(jobs)


def test_load_replaces_an_interval(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("day", pa.date32()), ("v", pa.int64())]), key=["day"])
    Path(tmp_path / "rows.csv").write_text("day,v\n2026-01-01,1\n2026-01-02,2\n")
    lake = Lake(tmp_path / "lake")
    assert invoked(lake, "load", "db.t", str(tmp_path / "rows.csv")).exit_code == 0
    Path(tmp_path / "more.csv").write_text("day,v\n2026-01-02,7\n")
    load = ("load", "db.t", str(tmp_path / "more.csv"))
    run = invoked(lake, *load, "--replace-interval", "day", "--lower", "2026-01-02", "--upper", "2026-01-03")
    assert run.exit_code == 0, run.output
    assert sorted(table.refresh().scan().to_arrow()["v"].to_pylist()) == [1, 7]
    for wrong in (["--lower", "2026-01-02"], ["--replace-interval", "day"], ["--replace-interval", "day", "--upsert"]):
        assert invoked(lake, *load, *wrong).exit_code == 2
    assert tf.open_catalog(tmp_path / "lake").load_table("db.t").snapshot_id == table.snapshot_id
