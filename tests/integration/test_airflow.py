"""Runs the DAG of the guide, unchanged.

Airflow has many dependencies, so it is installed in a separate environment: `make test-airflow` creates it and runs
this file.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

import tableformat as tf

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAMS: Final = ROOT / ".venv-airflow" / "bin"
PAGE: Final = ROOT / "docs" / "tasks" / "airflow.md"
NAMED_FILE: Final = re.compile(r"`([\w./]+)`[^`]*:\n\n```\n(.*?)```", re.DOTALL)
CREATION: Final = re.compile(r"`(setup\.py)` [^\n]*:\n\n```\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.skipif(not PROGRAMS.exists(), reason="Airflow is not there: `make test-airflow` installs it")


def test_a_day_that_runs_twice_has_its_rows_once(tmp_path: Path) -> None:
    page = PAGE.read_text()
    for name, content in (*CREATION.findall(page), *NAMED_FILE.findall(page)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": str(ROOT),
    }
    day = ("airflow", "dags", "test", "visits", "2026-01-31")
    for program, *arguments in (("python", "setup.py"), ("airflow", "db", "migrate"), day, day):
        done = subprocess.run(
            [PROGRAMS / program, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    visits = tf.open_catalog(tmp_path / "lake").read("shop.visits")
    assert visits.to_arrow().to_pylist() == [{"ts": dt.datetime(2026, 1, 31), "customer": "ann", "visits": 5}]
