"""Readers that are run over the corpus: right, rejected, wrong or crashed; their output, and the matrix of results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tableformat.cli.main import app
from tableformat.corpus.answers import Answer, Verdict, judge
from tableformat.corpus.cases import choose_cases, read_cases
from tableformat.corpus.check import READERS, Reader, check
from tableformat.corpus.rules import read_rules
from tableformat.corpus.specification import specification_directory
from tableformat.corpus.write import WrittenCase, write_corpus
from tableformat.errors import UnknownOptionError

pytestmark = pytest.mark.slow

WANTED = ("null-matches-null-and-nothing-else", "a-path-matches-character", "with-other-bytes", "every-verb-works")
FAKE = """
import json, os, signal, sys
rows = [{"id": 3, "cat": "a"}, {"id": None, "cat": None}, {"id": 4, "cat": None}, {"id": 3, "cat": ""}]
how, *paths = sys.argv[1:]
for path in paths:
    print("WARN: a line of a library")
    if how == "dies" and path == paths[1]:
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "hangs" or (how == "hangs later" and path == paths[1]):
        signal.pause()
    print(json.dumps({"reader": "Fake 1", "error": "cannot"} if how == "refuses" else {"rows": rows}), flush=True)
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[WrittenCase]:
    cases = choose_cases(read_cases(), WANTED)
    return write_corpus(tmp_path_factory.mktemp("corpus") / "c", cases, read_rules(specification_directory()))


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    return script


def reader(script: Path, how: str) -> Reader:
    return Reader("fake", (sys.executable, str(script), how))


def test_library_is_right_and_pyiceberg_rejects_equality_deletes(written: list[WrittenCase]) -> None:
    ours, theirs = (check(Reader.parse(name), written, tables_per_process=20) for name in ("tableformat", "pyiceberg"))
    assert {result.verdict for result in ours.by_case.values()} == {Verdict.RIGHT}
    assert theirs.version.startswith("PyIceberg 0.")
    found = {case.id: theirs.by_case[case.id].verdict for case in written}
    assert found["equality-deletes/null-matches-null-and-nothing-else.v2"] is Verdict.REFUSED
    assert found["position-deletes/a-path-matches-character-for-character.v3"] is Verdict.RIGHT
    assert found["unreadable/a-file-of-deletion-vectors-with-other-bytes-in-it-fails-the-scan.v3"] is Verdict.RIGHT


def test_wrong_rows_fail_and_refusals_are_classified(written: list[WrittenCase]) -> None:
    case = next(case for case in written if "null-matches" in case.id)
    assert case.rows is not None
    rows = [dict(zip(case.columns, row, strict=True)) for row in case.rows]
    assert judge(case, Answer(rows=rows[::-1])).verdict is Verdict.RIGHT
    short = judge(case, Answer(rows=[*rows[1:], rows[1]]))
    assert (short.verdict, short.detail) == (Verdict.WRONG, "missing: (3, a); too many: (null, null)")
    assert judge(case, Answer(error="no\nsuch")).detail == "no such"
    assert judge(case, Answer(rows=[{"id": 1}])).detail == "a row has the columns ['id'], not ['id', 'cat']"
    unreadable = next(case for case in written if case.rows is None)
    assert judge(unreadable, Answer(rows=[])).verdict is Verdict.WRONG
    assert judge(unreadable, Answer(error="corrupt")).verdict is Verdict.RIGHT


def test_values_are_compared_by_column_type(written: list[WrittenCase]) -> None:
    from dataclasses import replace

    columns = {"f": "float", "d": "decimal(9, 2)", "t": "timestamptz", "b": "binary", "x": "double", "u": "uuid"}
    uuid = "00000000-0000-0000-0000-00000000000a"
    case = replace(written[0], columns=columns, rows=((0.1, "1.50", "2024-01-01T12:00:00+00:00", "00ff", "NaN", uuid),))
    same = (0.10000000149011612, "1.5", "2024-01-01T13:00:00+01:00", "00FF", "NaN", uuid.replace("-", ""))
    assert judge(case, Answer(rows=[dict(zip(columns, same, strict=True))])).verdict is Verdict.RIGHT
    wrong = judge(case, Answer(rows=[dict(zip(columns, (*same[:2], "noon", *same[3:]), strict=True))]))
    assert wrong.verdict is Verdict.WRONG
    assert "does not have the type of its column" in str(wrong.detail)


def test_crashing_or_hanging_reader_affects_one_table(written: list[WrittenCase], fake: Path) -> None:
    cases = [case for case in written if "null-matches" in case.id]
    dying = check(reader(fake, "dies"), [*cases, *written[2:4]], tables_per_process=4)
    verdicts = [dying.by_case[case.id].verdict for case in [*cases, *written[2:4]]]
    assert verdicts[:2] == [Verdict.RIGHT, Verdict.CRASHED]
    assert "signal 9" in str(dying.by_case[cases[1].id].detail)
    assert Verdict.CRASHED in verdicts[2:]
    hanging = check(reader(fake, "hangs"), cases[:1], timeout_seconds=0.3)
    assert hanging.by_case[cases[0].id].detail == "no answer within 0.3 seconds."
    later = check(reader(fake, "hangs later"), cases[:2], tables_per_process=250, timeout_seconds=1)
    found = [later.by_case[case.id] for case in cases[:2]]
    assert [each.verdict for each in found] == [Verdict.RIGHT, Verdict.CRASHED]
    assert found[1].detail == "no answer within 1 seconds."


def test_reader_may_be_a_name_or_a_command() -> None:
    assert Reader.parse("polars").command[1:] == (str(READERS / "read_tables.py"), "polars")
    assert Reader.parse("My-Engine.1=bin/read --all").command == ("bin/read", "--all")
    assert Reader.parse("env A=1 {readers}/x").command == ("env", "A=1", f"{READERS}/x")
    with pytest.raises(UnknownOptionError):
        Reader.parse("polar")


def run(*arguments: str) -> tuple[int, str, str]:
    found = CliRunner(env={"COLUMNS": None}).invoke(app, list(arguments))
    return found.exit_code, found.stdout, found.stderr


def test_corpus_command_line(tmp_path: Path, fake: Path) -> None:
    status, stdout, _ = run("corpus", "write", str(tmp_path / "c"), "--case", "null-matches-null")
    assert (status, " ".join(stdout.split()[:2])) == (0, "2 tables")
    command = f"my={sys.executable} {fake} answers"
    assert run("corpus", "check", str(tmp_path / "c"), "--reader", command)[0] == 0
    readers = ("--reader", command, "--reader", "tableformat")
    status, stdout, _ = run("corpus", "check", "--case", "every-verb-works", *readers)
    assert status == 1
    assert "every-verb-works-on-an-empty-table.v2  " in stdout
    assert "    tableformat corpus check --case verbs/every-verb-works-on-an-empty-table.v2 --reader 'my=" in stdout
    status, stdout, _ = run("corpus", "check", str(tmp_path / "c"), "--reader", command, "-o", "json")
    assert [len(json.loads(stdout)[name]) for name in ("readers", "cases")] == [1, 2]
    assert run("corpus", "check", str(tmp_path / "c"), "--corpus", "x", "--reader", command)[0] == 2


def test_missing_reader_is_skipped_on_request(fake: Path) -> None:
    """The measurement of the other readers continues, and the reason is printed."""
    arguments = ["corpus", "check", "--case", "null-matches-null", "--reader", f"fake={sys.executable} {fake} reads"]
    missing = ["--reader", "gone=./no/such/program", "--reader", f"ends={sys.executable} -c pass"]
    status, _, stderr = run(*arguments, *missing)
    assert status != 0
    assert "cannot be started" in stderr
    status, stdout, stderr = run(*arguments, *missing, "--leave-out-missing", "-o", "json")
    assert status == 0, stderr
    assert [each["name"] for each in json.loads(stdout)["readers"]] == ["fake"]
    assert "the reader gone cannot be started" in stderr
    assert "the reader ends answered for none of the tables" in stderr
