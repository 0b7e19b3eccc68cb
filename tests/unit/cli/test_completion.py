"""Shell completion: commands, and the tables of the catalog that the command line names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from cli_lake import TABLE, make_lake
from typer.testing import CliRunner

import tableformat as tf
from tableformat.catalogs.table_names import table_names
from tableformat.cli.main import app


def completed(line: str, **environment: str) -> list[str]:
    """The words that bash is offered for the last word of the line."""
    words = line.split(" ")
    asked = {"_TABLEFORMAT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return CliRunner(env=asked | environment).invoke(app, [], prog_name="tableformat").stdout.split()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("lake")
    make_lake(directory)
    return directory


def test_completion_lists_tables_of_the_given_catalog(directory: Path) -> None:
    assert completed(f"tableformat --catalog {directory} show ") == [TABLE, "db.empty"]
    assert completed("tableformat compact db.c", TABLEFORMAT_CATALOG=str(directory)) == [TABLE]
    assert completed("tableformat compact x.", TABLEFORMAT_CATALOG=str(directory)) == []


def test_completion_does_not_import_pyiceberg(directory: Path) -> None:
    """Decision 37: the names are the same as those of the catalog, and a lake of another form is opened by it."""
    with tf.open_catalog(directory) as catalog:
        catalog.create_namespace("a.b")
        catalog.create_table(("a.b", "x.y"), pa.schema([("id", pa.int64())]))
        names = catalog.list_tables()
    assert table_names(directory / "catalog.db") == names
    assert completed(f"tableformat --catalog {directory} show ") == names
    code = (
        "import sys\n"
        "from tableformat.cli.main import app\n"
        "try: app(prog_name='tableformat')\n"
        "finally: print('pyiceberg' in sys.modules, file=sys.stderr)\n"
    )
    words = {"COMP_WORDS": "tableformat show db.", "COMP_CWORD": "2", "TABLEFORMAT_CATALOG": f"{directory}/"}
    environment = {**os.environ, **words, "_TABLEFORMAT_COMPLETE": "complete_bash"}
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment)
    assert (run.stdout.split(), run.stderr) == ([TABLE, "db.empty"], "False\n")


def test_completion_without_catalog_is_silent_and_empty(tmp_path: Path) -> None:
    assert completed(f"tableformat --catalog {tmp_path / 'none'} show d") == []
    assert completed("tableformat show ./", TABLEFORMAT_CATALOG=str(tmp_path)) == []


def test_completion_lists_commands() -> None:
    assert completed("tableformat delete-") == ["delete-prefix", "delete-range", "delete-ranges"]
