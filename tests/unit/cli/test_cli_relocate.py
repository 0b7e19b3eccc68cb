"""`tableformat relocate`: a moved lake, a backup, and requests that are rejected."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

from maintenance_tables import keyed_table, rows
from typer.testing import CliRunner

from tableformat.catalogs.relocate_lake import RelocateResult
from tableformat.cli.main import app


def run(*arguments: str | Path, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["--catalog", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.output


def test_relocated_lake_is_writable(tmp_path: Path) -> None:
    """LK-8"""
    keyed_table(tmp_path).append(rows("a", range(3)))
    moved = tmp_path / "moved"
    shutil.move(tmp_path / "lake", moved)
    refused = run(moved, "delete-prefix", "db.t", "id1=a", status=1)
    assert "tableformat relocate" in " ".join(refused.split())
    assert "1 table would be relocated" in run(moved, "relocate", "--dry-run")
    assert "1 table relocated to" in run(moved, "relocate")
    assert "Already present: db.t." in run(moved, "relocate")
    run(moved, "delete-prefix", "db.t", "id1=a")


def test_backup_and_restore(tmp_path: Path) -> None:
    """LK-7"""
    keyed_table(tmp_path).append(rows("a", range(3)))
    lake, backup = tmp_path / "lake", tmp_path / "backup"
    document = json.loads(run(lake, "relocate", "db.t", "--to", backup, "-o", "json"))
    assert set(document) == {field.name for field in dataclasses.fields(RelocateResult)}
    assert [table["copied_files_count"] for table in document["tables"]] == [1]
    shutil.rmtree(lake)
    run(backup, "relocate", "--to", lake)
    assert json.loads(run(lake, "query", "SELECT count(*) AS n FROM db.t", "-o", "json"))["rows"] == [{"n": 3}]
    assert "--to-option" in run(lake, "relocate", "--to-option", "a=b", status=1)
    assert "NAME=VALUE" in run(lake, "relocate", "--to", backup, "--to-option", "a", status=2)
