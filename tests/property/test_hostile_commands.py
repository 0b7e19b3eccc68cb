"""Every command with options and arguments that nobody intends: a result or an error of the library, in the requested
form, and nothing else. Failing commands and commands with `--dry-run` change no table."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.main
from click.testing import Result
from example_counts import examples
from fast_lake import MEMORY
from hypothesis import given, settings
from hypothesis import strategies as st
from new_lakes import new_lake
from soak_figures import count
from typer.testing import CliRunner

import tableformat as tf
from tableformat.cli.main import app

COMMANDS_PER_EXAMPLE: Final = 12
LEFT_OUT: Final = ("demo", "corpus", "serve", "shell")
"""Commands that create their own lake, or do not end by themselves."""
SCHEMA: Final = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("v", pa.float64()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
    ]
)
_WORDS: Final = (
    *("", " ", "db.t", "db.years", "db.none", "none.t", "t", "db", "db.t.branch_b", ".", "..", "db.", ".t"),
    *('db."t"', "b", "main", "id1", "id2", "v", "nope", "id1,id2", "id2,", "id1=a", "id2=1", "id2=x"),
    *("id1=a,id2=1", "=", "a=b=c", "v=nan", "0", "1", "-1", "1.5", "99999999999999999999", "nan", "1e3"),
    *("[0, 1)", "2020,2021", "2021..2022", "2020-01-01", "x", "2026-01-31T12:00:00", "9999-12-31", "0001-01-01"),
    *("30m", "-5s", "1h", "0s", "10GB", "-1B", "7d", "1e400d", "now", "id2 = 1", "id2 =", "v > 'x'", "id1 IN ()"),
    *("1 = 1", "\x00", "\ud800", "é", "'; DROP TABLE t; --", "[bold]", "%s", "{}", "compact"),
    *("convert-deletes,compact", "nonsense", "fold", "bucket(4, id1)", "identity(id1)", "format-version=3"),
    *("write.format.default=parquet", "tableformat.upkeep=on", "SELECT 1", "SELECT * FROM db.t", "SELECT"),
    *("SELEC 1", "-", "SELECT * FROM db.t WHERE v = 1", "SELECT NULL AS a, 1 AS a", "SELECT 'nan'::DOUBLE"),
    *("tag", "json", "--", "-n", "~"),
)


@cache
def original() -> Path:
    """A lake with deletes of every kind, a branch, a tag and range partitions, and files to load."""
    directory = Path(tempfile.mkdtemp(prefix="commands-", dir=MEMORY if MEMORY.is_dir() else None))
    with new_lake(directory / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["id1", "id2"], properties={"format-version": "2"})
        for number in range(3):
            table.append(pa.table({"id1": ["a", "b"], "id2": [number] * 2, "v": [1.0, None], "at": [None] * 2}, SCHEMA))
        table.create_tag("tag")
        table.delete_prefix({"id1": "a", "id2": 0})
        table.delete("id2 = 1 AND id1 = 'b'", mode="scan")
        table.create_branch("b")
        years = tf.RangePartitions(on=["id2"], bounds=[(2020, 2024)], step=1)
        catalog.create_table("db.years", SCHEMA, key=["id1", "id2"], range_partitions=years).append(
            pa.table({"id1": ["a"], "id2": [2021], "v": [1.0], "at": [None]}, SCHEMA)
        )
    pq.write_table(pa.table({"id1": ["z"], "id2": [2022]}), directory / "rows.parquet")
    (directory / "rows.csv").write_text("id1,id2\nq,2023\n")
    (directory / "broken.json").write_text('{"id1": ')
    return directory


@pytest.fixture(scope="module", autouse=True)
def removed_at_the_end() -> Iterator[None]:
    yield
    shutil.rmtree(original(), ignore_errors=True)


def command_line(pick: random.Random, directory: Path) -> list[str]:
    group: Any = typer.main.get_command(app)
    name = pick.choice([each for each in group.commands if each not in LEFT_OUT])
    words: list[str] = [name]
    for parameter in group.commands[name].params:
        is_argument = parameter.param_type_name == "argument"
        is_needed = parameter.required and pick.random() < 0.95
        if not (is_needed or pick.random() < (0.5 if is_argument else 0.2)):
            continue
        if not is_argument:
            words.append(pick.choice(parameter.opts))
        if is_argument or not parameter.is_flag:
            for _ in range(pick.choice((1, 1, 2)) if parameter.nargs == -1 or parameter.multiple else 1):
                words.append(_word(pick, parameter.name, directory))
                if not is_argument:
                    break
    if "--watch" in words:
        words += ["--for", "0s"]
    if pick.random() < 0.4 and "--yes" in {option for each in group.commands[name].params for option in each.opts}:
        words.append("--yes")
    return words


def _word(pick: random.Random, parameter: str, directory: Path) -> str:
    """A word for the parameter; in half of the cases a table that exists, so that the command does something."""
    if parameter in ("table", "tables") and pick.random() < 0.8:
        return pick.choice(("db.t", "db.t", "db.years"))
    if parameter in ("page", "svg", "to", "location"):
        return str(directory / pick.choice(("new.svg", "new.html", "made", "rows.csv")))
    if parameter in ("files", "metadata_location") and pick.random() < 0.7:
        return str(directory / pick.choice(("rows.parquet", "rows.csv", "broken.json", "none.parquet", "*.parquet")))
    return pick.choice(_WORDS)


@pytest.mark.slow
@settings(max_examples=examples(0.1))
@given(seed=st.integers(0, 2**63))
def test_hostile_commands_succeed_or_report_library_errors(seed: int) -> None:
    pick = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="commands-", dir=MEMORY if MEMORY.is_dir() else None) as parent:
        directory = Path(parent) / "copy"
        shutil.copytree(original(), directory)
        with tf.open_catalog(str(directory / "lake")) as catalog:
            catalog.relocate()
        before = os.getcwd()
        os.chdir(directory)
        try:
            for _ in range(COMMANDS_PER_EXAMPLE):
                words, is_json = command_line(pick, directory), pick.random() < 0.6
                arguments = [*words, "--output", "json"] if is_json and "--" not in words else words
                check_command(directory, arguments, is_json=is_json and "--" not in words)
                count("commands")
        finally:
            os.chdir(before)


def check_command(directory: Path, arguments: list[str], *, is_json: bool) -> None:
    lake = directory / "lake"
    told = shlex.join(arguments)
    tables = tables_of(lake)
    result = CliRunner(env={"TABLEFORMAT_CATALOG": str(lake)}).invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), f"{told}: {result.exception!r}"
    assert result.exit_code in (0, 1, 2), f"{told}: status {result.exit_code}"
    assert result.exit_code == 2 or "unexpected" not in result.stderr, f"{told}: {result.stderr}"
    assert "Traceback" not in result.stderr, f"{told}: {result.stderr}"
    if result.exit_code == 0:
        assert "Error" not in result.stderr or "--watch" in arguments, f"{told}: {result.stderr}"
    else:
        assert result.stderr or result.stdout, f"{told}: ended with {result.exit_code} and without a word"
    if is_json and "--watch" not in arguments:
        check_json(result, told)
    if result.exit_code == 2 or "--dry-run" in arguments:
        assert tables_of(lake) == tables, f"{told} ended with {result.exit_code} and changed a table"


def check_json(result: Result, told: str) -> None:
    """One document on standard output, and an error as one on the other; usage is for people."""
    if result.exit_code == 0 and "--help" not in told:
        try:
            json.loads(result.stdout, parse_constant=lambda constant: pytest.fail(f"{told}: {constant} is no JSON"))
        except json.JSONDecodeError as error:
            raise AssertionError(f"{told}: not one document: {result.stdout!r}") from error
    if result.exit_code == 1 and not result.stdout:
        last = result.stderr.splitlines()[-1]
        assert json.loads(last)["error"]["message"], f"{told}: {result.stderr}"


def tables_of(lake: Path) -> dict[str, str]:
    """Each table's metadata file."""
    with tf.open_catalog(str(lake)) as catalog:
        return {name: catalog.load_table(name).iceberg.metadata_location for name in catalog.list_tables()}
