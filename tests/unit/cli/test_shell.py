"""The command line: `shell`, from a pipe and at a pseudo-terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cli_lake import TABLE, Lake, Run, calendar_rows, make_lake
from typer.testing import CliRunner

import tableformat as tf
from tableformat.cli.main import app
from tableformat.cli.sql_text import is_blank, split_statements


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "lake")


def piped(lake: Lake, script: str, *options: str) -> Run:
    """The command with a script as standard input."""
    environment = {"TABLEFORMAT_CATALOG": str(lake.directory)}
    result = CliRunner(env=environment).invoke(app, ["shell", *options], input=script)
    return Run(result.exit_code, result.stdout, result.stderr)


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("select 1; select 2;", ["select 1;", "select 2;"], ""),
        ("select 1", [], "select 1"),
        ("select ';' ; x", ["select ';' ;"], " x"),
        ("select 'it''s;' as \"a;b\";", ["select 'it''s;' as \"a;b\";"], ""),
        (r"select e'\';' ;", [r"select e'\';' ;"], ""),
        ("select 1 -- one; more\n;", ["select 1 -- one; more\n;"], ""),
        ("select /* ; */ 1;", ["select /* ; */ 1;"], ""),
        ("select $a$;$a$;", ["select $a$;$a$;"], ""),
        ("select 'open; ", [], "select 'open; "),
        ("select /* open; ", [], "select /* open; "),
    ],
)
def test_statements_end_with_a_semicolon(text: str, statements: list[str], rest: str) -> None:
    assert split_statements(text) == (statements, rest)


@pytest.mark.parametrize(("text", "expected"), [(" \n;", True), ("-- note", True), ("/* a */ ;", True), ("x", False)])
def test_blank_text_is_recognized(text: str, expected: bool) -> None:
    assert is_blank(text) is expected


def test_script_of_several_lines_and_commands(lake: Lake) -> None:
    run = piped(lake, f".tables\n.schema {TABLE}\nSELECT count(*) AS n\nFROM {TABLE};\n.quit\nSELECT 1;\n")
    assert (run.status, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[:2] == [TABLE, "db.empty"]
    assert "id1      string required key 1" in lines
    assert lines[-1].strip() == "9"


def test_output_modes(lake: Lake) -> None:
    """The last statement needs no semicolon."""
    run = piped(lake, "SELECT 1 AS a, [1, 2] AS b, NULL AS c, 'x,y' AS d, true AS e;\n", "--mode", "csv")
    assert run.stdout == 'a,b,c,d,e\n1,"[1, 2]",,"x,y",true\n'
    run = piped(lake, f".mode json\nSELECT count(*) AS n FROM {TABLE}")
    assert json.loads(run.stdout)["rows"] == [{"n": 9}]
    assert piped(lake, "", "-o", "json").status == 0


def test_script_ends_at_the_first_error_with_the_pointer_of_duckdb(lake: Lake) -> None:
    run = piped(lake, f"SELECT 1 AS one;\nSELECT *\nFRM {TABLE};\nSELECT 2 AS two;\n")
    assert run.status == 1
    assert "one" in run.stdout
    assert "two" not in run.stdout
    assert re.search(r"LINE 2: FRM .*\n +\^", run.stderr)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"DROP TABLE {TABLE};", "`drop` change them"),
        (".tabels", "Did you mean '.tables'"),
        (".mode xml", "one of table, csv, json"),
        (".schema", "takes the name of a table"),
        (".schema db.none", "no table 'db.none'"),
    ],
)
def test_unsupported_shell_statements_are_rejected(lake: Lake, text: str, message: str) -> None:
    run = piped(lake, text)
    assert run.status == 1
    assert message in " ".join(run.stderr.split())


def test_missing_shell_extra_is_named(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from tableformat.cli import shell

    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(tf.TableFormatError, match=r"pip install 'tableformat\[shell\]'"):
        shell._require_prompt()


@dataclass
class Terminal:
    """The shell at a pseudo-terminal."""

    process: subprocess.Popen[bytes]
    descriptor: int
    seen: str = field(default="")

    def send(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def expect(self, pattern: str, seconds: float = 60) -> None:
        """Read until the pattern is in the output, which is then forgotten up to its end."""
        until = time.monotonic() + seconds
        while (found := re.search(pattern, self.seen)) is None:
            assert time.monotonic() < until, f"{pattern!r} is not in {self.seen!r}"
            if select.select([self.descriptor], [], [], 0.2)[0]:
                more = os.read(self.descriptor, 65_536).decode(errors="replace")
                self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", more)
        self.seen = self.seen[found.end() :]


@contextmanager
def at_terminal(lake: Lake, state: Path) -> Iterator[Terminal]:
    pytest.importorskip("prompt_toolkit")
    outer, inner = pty.openpty()
    environment = {
        **os.environ,
        "TABLEFORMAT_CATALOG": str(lake.directory),
        "XDG_STATE_HOME": str(state),
        "TERM": "xterm",
        "PAGER": "cat",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tableformat", "shell"],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=environment,
        start_new_session=True,
    )
    os.close(inner)
    try:
        yield Terminal(process, outer)
    finally:
        process.kill()
        process.wait()
        os.close(outer)


def test_statement_of_several_lines_sees_the_newest_snapshot(lake: Lake, tmp_path: Path) -> None:
    with at_terminal(lake, tmp_path / "state") as terminal:
        terminal.expect("tableformat>")
        terminal.send("SELECT count(*) * 1000 AS n\r")
        terminal.expect(r"\.\.\.>")
        terminal.send(f"FROM {TABLE};\r")
        terminal.expect("9000")
        with lake.table() as table:
            table.append(calendar_rows("Z"))
        terminal.expect("tableformat>")
        terminal.send(f"SELECT count(*) * 1000 AS n FROM {TABLE};\r")
        terminal.expect("13000")
        terminal.expect("tableformat>")
        terminal.send("\x04")
        assert terminal.process.wait(30) == 0


def test_sql_error_shows_its_position_and_shell_continues(lake: Lake, tmp_path: Path) -> None:
    with at_terminal(lake, tmp_path / "state") as terminal:
        terminal.expect("tableformat>")
        terminal.send(f"SELECT nope FROM {TABLE};\r")
        terminal.expect(r"LINE 1: SELECT nope")
        terminal.expect(r"\^")
        terminal.expect("tableformat>")
        terminal.send("SELECT 6 * 7 AS answer;\r")
        terminal.expect("42")
        terminal.send(".quit\r")
        assert terminal.process.wait(30) == 0


ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"


def test_ctrl_c_ends_a_script(lake: Lake) -> None:
    command = [sys.executable, "-m", "tableformat", "--catalog", str(lake.directory), "shell", "--mode", "csv"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"SELECT 'underway' AS begun;\n{ENDLESS};\n".encode())
            process.stdin.flush()
            assert [process.stdout.readline() for _ in range(2)] == [b"begun\n", b"underway\n"]
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert b"interrupted" in told


def test_ctrl_c_cancels_the_statement(lake: Lake, tmp_path: Path) -> None:
    with at_terminal(lake, tmp_path / "state") as terminal:
        terminal.expect("tableformat>")
        terminal.send("SELECT half\r")
        terminal.expect(r"\.\.\.>")
        terminal.send("\x03")
        terminal.expect("tableformat>")
        terminal.send(f"SELECT 'under' || 'way'; {ENDLESS};\r")
        terminal.expect("underway")
        time.sleep(1)
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.expect("Cancelled")
        terminal.expect("tableformat>")
        terminal.send("SELECT 6 * 7 AS answer;\r")
        terminal.expect("42")


def test_tab_completion_and_private_history(lake: Lake, tmp_path: Path) -> None:
    with at_terminal(lake, tmp_path / "state") as terminal:
        terminal.expect("tableformat>")
        terminal.send("SELECT max(num_c\t")
        terminal.expect("num_cal")
        terminal.send(") * 7 AS n FROM db.cal\t")
        terminal.expect(re.escape(TABLE))
        terminal.send(";\r")
        terminal.expect("21")
        terminal.send(".quit\r")
        assert terminal.process.wait(30) == 0
    file = tmp_path / "state" / "tableformat" / "shell_history"
    assert "FROM db.calendars;" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
