"""Runs the page of the guide about other tools.

Their packages have many dependencies, so they are installed in a separate environment: `make test-tools` creates it and
runs this file.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PYTHON: Final = ROOT / ".venv-tools" / "bin" / "python"
SCRIPT: Final = (
    "import sys; from pathlib import Path; from documents import run_document; print(run_document(Path(sys.argv[1])))"
)

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="the tools are not there: `make test-tools` installs them")


def test_the_page_prints_what_it_says(tmp_path: Path) -> None:
    """Ibis, Daft, Ray, dlt and Dagster."""
    done = subprocess.run(
        [PYTHON, "-c", SCRIPT, ROOT / "docs" / "tasks" / "tools.md"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "unit")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert int(done.stdout.split()[-1]) == 5
