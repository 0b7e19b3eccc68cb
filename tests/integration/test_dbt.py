"""Runs the dbt project of the guide, unchanged, on the Spark catalog.

dbt has many dependencies, so it is installed in a separate environment: `make test-dbt` creates it and runs this file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import tableformat as tf

ROOT: Final = Path(__file__).resolve().parents[2]
DBT: Final = ROOT / ".venv-dbt" / "bin" / "dbt"
PAGE: Final = ROOT / "docs" / "tasks" / "dbt.md"
NAMED_FILE: Final = re.compile(r"`([\w./]+)`:\n\n```\n(.*?)```", re.DOTALL)
STATED_ITEMS: Final = re.compile(r"(?m)^\| `(?:dbt )?([\w+]+)`.*\| ([\w, ]+) \|$")
MODELS: Final = {
    "append": "appended",
    "merge": "merged",
    "insert_overwrite": "overwritten",
    "delete+insert": "replaced",
    "snapshot": "lines_over_time",
}
"""The table that each strategy of the page writes."""

pytestmark = pytest.mark.skipif(not DBT.exists(), reason="dbt is not there: `make test-dbt` installs it")


def build(project: Path) -> None:
    command = [sys.executable, "-m", "spark_ext", "--warehouse", str(project / "lake")]
    options = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] --conf spark.ui.enabled=false {options} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [DBT, "build", "--profiles-dir", "."], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_each_strategy_leaves_the_stated_items(tmp_path: Path) -> None:
    """SQ-31, SP-22: append, merge, insert_overwrite, delete+insert and snapshots, twice each."""
    page = PAGE.read_text()
    first, second = page.split("## Two runs")
    project = tmp_path / "shop"
    for part in (first, second):
        for name, content in NAMED_FILE.findall(part):
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        build(project)
    catalog = tf.open_catalog(str(project / "lake"))
    stated = {strategy: sorted(items.split(", ")) for strategy, items in STATED_ITEMS.findall(second)}
    found = {
        strategy: sorted(catalog.load_table(f"db.{model}").scan(columns=["item"]).to_arrow()["item"].to_pylist())
        for strategy, model in MODELS.items()
    }
    assert found == stated
    over_time = catalog.load_table("db.lines_over_time").scan(where="dbt_valid_to IS NOT NULL")
    assert over_time.to_arrow()["item"].to_pylist() == ["pen"], "the changed row is closed"
    replaced = catalog.load_table("db.replaced")
    assert set(replaced.inspect.delete_files()["kind"].to_pylist()) == {"range"}
    assert len(replaced.history()) == 2
