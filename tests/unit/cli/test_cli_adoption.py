"""`adopt`, `add-files` and `register-table`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from new_lakes import new_lake
from typer.testing import CliRunner

from tableformat.cli.main import app

ROWS = pa.table({"id": [1, 2], "v": ["x", "y"]})


def run(*arguments: str | Path, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["--catalog", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.output


def test_a_table_is_registered_adopted_and_filled(tmp_path: Path) -> None:
    """LK-9, LK-10"""
    lake = tmp_path / "lake"
    with new_lake(lake) as catalog:
        table = catalog.iceberg.create_table("db.gone", ROWS.schema)
        table.append(ROWS)
        catalog.drop_table("db.gone")
    assert "db.t is the table at" in run(lake, "register-table", "db.t", table.metadata_location)
    assert "pass the key columns" in run(lake, "adopt", "db.t", status=1)
    assert "would have the key (id); made required: id; 0 data files read" in run(
        lake, "adopt", "db.t", "--key", "id", "--dry-run"
    )
    document = json.loads(run(lake, "adopt", "db.t", "--key", "id", "-o", "json"))
    assert (document["key"], document["health"]["data_file_count"]) == (["id"], 1)
    pq.write_table(pa.table({"id": [3], "v": ["z"]}), tmp_path / "more.parquet")
    assert "1 file with 1 row added to db.t." in run(lake, "add-files", "db.t", tmp_path / "more.parquet")
    assert "already" in run(lake, "add-files", "db.t", tmp_path / "more.parquet", status=1)
    assert json.loads(run(lake, "query", "SELECT count(*) AS n FROM db.t", "-o", "json"))["rows"] == [{"n": 3}]


def test_adopt_prints_commands_for_the_next_steps(tmp_path: Path) -> None:
    """And `--key` takes several columns as `create` does."""
    lake = tmp_path / "lake"
    with new_lake(lake) as catalog:
        table = catalog.create_table("db.t", pa.schema([("a", pa.int64()), ("b", pa.int64()), ("v", pa.string())]))
        table.append(pa.table({"a": [1, 2], "b": [1, 1], "v": ["x", "y"]}))
        table.delete("a = 1", mode="equality")
    told = run(lake, "adopt", "db.t", "--key", "a,b")
    assert "has the key (a, b)" in told
    assert f"tableformat--catalog{lake}convert-deletesdb.t" in "".join(told.split()), "lines end where the screen does"
    assert "table.maintenance" not in told
    assert "has the key (b, a)" in run(lake, "adopt", "db.t", "--key", "b", "--key", "a")
